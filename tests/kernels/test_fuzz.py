"""No call of a mechanism or operator gives other numbers by other versions, in whatever memory it comes.

More of them, and one again: ``python tests/fuzz.py --help``.
"""

from __future__ import annotations

import pytest
import torch
from fuzz import OUTCOMES, Verdict, fuzz, judge, table
from fuzzed_calls import OPERATORS, Call, call_of, one_for_all
from torch import Tensor

from kattn_cli.attention import ATTENTIONS
from kattn_cli.kernels.choice import version

SEED = 20


def assert_nothing_differs(verdicts: list[Verdict], first: int = 0) -> None:
    faults = [
        f"python tests/fuzz.py --seed {SEED} --only {first + number}: {verdict.outcome}: {verdict.reason}"
        for number, verdict in enumerate(verdicts)
        if verdict.outcome in ("different", "crash")
    ]
    assert not faults, "\n".join([*faults, table(verdicts)])


@pytest.mark.parametrize("first", [0, 100])
def test_some_calls(first: int) -> None:
    verdicts = fuzz(SEED, range(first, first + 100))
    assert_nothing_differs(verdicts, first)
    assert sum(verdict.outcome == "equal" for verdict in verdicts) > 80
    assert any(verdict.outcome == "refused" for verdict in verdicts)


@pytest.mark.slow
def test_ten_thousand_calls() -> None:
    verdicts = fuzz(SEED, range(10_000))
    print(table(verdicts))
    assert_nothing_differs(verdicts)


def test_every_mechanism_and_operator_is_called() -> None:
    subjects = {call_of(SEED, number).subject for number in range(500)}
    assert subjects == {*(f"mechanism {name}" for name in ATTENTIONS), *(f"operator {name}" for name in OPERATORS)}


def test_a_call_is_the_same_again() -> None:
    one, other = call_of(SEED, 7), call_of(SEED, 7)
    assert one.text == other.text
    assert all(torch.equal(one.values[key], other.values[key]) for key in one.values)


def wrong(amount: float, where: str) -> Call:
    """A call whose fast version is wrong by so much, relatively: in its output, or in its gradient alone."""

    def function(z: dict[str, Tensor], mask: Tensor | None) -> dict[str, Tensor]:
        out = z["x"].sin()
        if version() == "fast":
            error = amount * z["x"]
            out = out + (error if where == "output" else error - error.detach())
        return {"out": out}

    return Call("operator sine", "", torch.float32, {"x": torch.linspace(-1, 1, 24).double().view(2, 3, 4)}, function)


@pytest.mark.parametrize("where", ["output", "gradient"])
def test_a_small_error_is_found(where: str) -> None:
    assert judge(wrong(1e-7, where)).outcome == "equal"
    found = judge(wrong(1e-5, where))
    assert found.outcome == "different"
    assert "fast" in found.reason
    assert table([found]).splitlines()[-1].split() == [
        "all",
        "1",
        *("1" if o == "different" else "0" for o in OUTCOMES),
    ]


def test_refusals_and_crashes_are_told_apart() -> None:
    call = wrong(0, "output")

    def refuse(z: dict[str, Tensor], mask: Tensor | None) -> dict[str, Tensor]:
        raise ValueError("sine: x: expected less")

    def crash(z: dict[str, Tensor], mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": z["x"] / z["y"]}

    def refuse_fast(z: dict[str, Tensor], mask: Tensor | None) -> dict[str, Tensor]:
        return refuse(z, mask) if version() == "fast" else {"out": z["x"]}

    call.function = refuse
    assert judge(call).outcome == "refused"
    call.function = crash
    assert judge(call).outcome == "crash"
    call.function = refuse_fast
    assert judge(call).outcome == "different"


def test_what_a_layout_hides_is_found() -> None:
    """A function that counts on as many rows as samples."""
    call = wrong(0, "output")
    call.mask = torch.ones(2, 3, dtype=torch.bool)
    call.given_mask = one_for_all(call.mask)
    call.function = lambda z, mask: {"out": z["x"] * (1 if mask is None else mask.sum())}
    assert judge(call).outcome == "different"
