"""Each probe finds the toy that cheats in its way, and no other; honest mechanisms pass all."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest
import torch

from kattn_cli.attention import attention_classes
from kattn_cli.commands.judge.probes import PROBES, probed
from kattn_cli.commands.judge.probes.finding import Finding, size
from kattn_cli.commands.judge.probes.subject import Subject
from kattn_cli.errors import RecipeError
from kattn_cli.recipe.schema import Mechanism

TOYS = Path(__file__).parent / "toys"
FUTURE, BATCH, AGAIN, PADDING, RIGHT, WHOLE, KNOWN, MATRIX, OVERFLOW, ORDER, SIZE = (one.__name__ for one in PROBES)


@cache
def findings(name: str, **options: object) -> dict[str, Finding]:
    name = f"{TOYS / 'cheats.py'}:{name}" if name[0].isupper() else name
    subject = Subject(Mechanism(name=name, **options))
    return dict(zip([one.__name__ for one in PROBES], probed(subject), strict=True))


def found(name: str) -> set[str]:
    return {probe for probe, finding in findings(name).items() if finding.word == "found"}


@pytest.mark.parametrize(
    ("toy", "probes"),
    [
        ("Renamed", {KNOWN}),
        ("SeesTheFuture", {FUTURE}),
        ("SeesTheFutureInTraining", {FUTURE, KNOWN}),
        ("Rounds", {WHOLE}),
        ("RoundsScores", {WHOLE}),
        ("BeginsAtZero", {WHOLE}),
        ("Detaches", {RIGHT, KNOWN, WHOLE}),
        ("PassesThrough", {RIGHT}),
        ("SeesTheBatch", {BATCH}),
        ("Draws", {AGAIN}),
        ("Remembers", {AGAIN, BATCH, RIGHT}),
        ("SeesPadding", {PADDING, KNOWN}),
        ("Overflows", {OVERFLOW}),
        ("KnowsPlaces", set()),
        ("HasTheMatrix", {MATRIX}),
    ],
)
def test_what_cheats_is_found_out(toy: str, probes: set[str]) -> None:
    assert found(toy) == probes, "\n".join(map(str, findings(toy).values()))


@pytest.mark.parametrize("name", [name for name in attention_classes() if name not in ("longformer", "bigbird")])
def test_the_papers_mechanisms_are_what_they_say(name: str) -> None:
    """Longformer and BigBird see all of so few tokens, as Nyströmformer and full softmax do."""
    assert found(name) <= ({KNOWN, MATRIX} if name in ("softmax", "nystromformer") else set())


def test_what_is_said_has_the_number() -> None:
    future = findings("SeesTheFuture")[FUTURE]
    assert re.fullmatch(r"outputs up to token \d+ move by [\d.]+ % of their size when the tokens after it change",
                        future.evidence)  # fmt: skip
    assert "in training" in findings("SeesTheFutureInTraining")[FUTURE].evidence
    assert findings("Renamed")[FUTURE].evidence == "it has none: supports_causal is not set"
    assert findings("RoundsScores")[WHOLE].evidence.endswith(
        "exactly 0, though outputs move with them: probe.weight, probe.bias, address.weight, address.bias"
    )
    assert findings("Rounds")[WHOLE].evidence.startswith("the gradient is 0 of the slope over a step of 0.1; exactly 0")
    assert "something is detached" in findings("Detaches")[RIGHT].evidence
    assert "softmax gives the same outputs at 25 tokens" in findings("Renamed")[KNOWN].evidence
    assert "projection 3 as queries, 4 as keys" in findings("HasTheMatrix")[MATRIX].evidence
    assert "yes: permuted tokens move outputs" in findings("KnowsPlaces")[ORDER].evidence
    assert "no: outputs are permuted with the tokens" in findings("Renamed")[ORDER].evidence
    assert "0 as its constructor leaves it" in findings("BeginsAtZero")[SIZE].evidence
    assert findings("Overflows")[OVERFLOW].evidence.endswith("outputs and gradients are no numbers")
    assert str(findings("Renamed")[FUTURE]).startswith("not asked  Does its causal form see the future?  it has none")


def test_a_causal_form_that_needs_an_option() -> None:
    assert "data-independent" in findings("primal")[FUTURE].evidence
    assert findings("primal", projection="data-independent")[FUTURE].word == "passed"


@pytest.mark.parametrize(
    ("toy", "message"),
    [
        ("Shortens", "does not fit the contract: forward(x) for x (3, 25, 32) gives (3, 24, 32), not the same"),
        ("Breaks", "does not fit the contract, forward(x) for x (3, 25, 32): RuntimeError: "),
    ],
)
def test_what_does_not_fit_the_contract(toy: str, message: str) -> None:
    with pytest.raises(RecipeError, match=re.escape(f"{toy}: {message}")):
        probed(Subject(Mechanism(name=f"{TOYS / 'cheats.py'}:{toy}")))


def test_float32_where_float64_does_not_run() -> None:
    subject = Subject(Mechanism(name=f"{TOYS / 'cheats.py'}:OnlySingle"))
    assert subject.dtype == torch.float32
    assert not {one.question for one in probed(subject) if one.word == "found"} - {findings("Renamed")[KNOWN].question}


@pytest.mark.parametrize(("value", "text"), [(0.5, "50 %"), (1e-4, "0.01 %"), (3e-9, "3e-09"), (0.0, "0")])
def test_sizes(value: float, text: str) -> None:
    assert size(value) == text
