"""Random calls of mechanisms and operators: whether slow, plain and fast operators give the same numbers.

    python tests/fuzz.py --calls 10000 --seed 0            # a table by mechanism and operator
    python tests/fuzz.py --seed 0 --only 123               # one call again, in full

The truth of a call is its slow version in float64, in clean memory. Allowed are four times the error of the slow
version in the call's own type, in clean memory too; four times what a rounding of all inputs changes in the truth; and
16 roundings of its largest number. In float64 the slow version's own error is that in float32, over as much as float64
is finer. A call that would be different is given the largest errors of the slow version among eight neighbours, since
its own may be small by luck, and for gradients 16 roundings of the largest number on the way back, since a gradient may
be the small difference of large ones. Where the truth is not a number, or not one of the type, nothing is asked; where
the slow version has none, nothing of the slow version, and in float32 of none.

A call is ``equal``; ``refused``, if all versions refuse it with the same words, in one line; ``different``; or a
``crash``, which is any other error.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any, Literal

import torch
from fuzzed_calls import Call, Function, call_of, contiguous
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from kattn_cli.errors import KattnError
from kattn_cli.kernels import choice

Outcome = Literal["equal", "refused", "different", "crash"]
OUTCOMES: tuple[Outcome, ...] = ("equal", "refused", "different", "crash")
TIMES = 4
ROUNDINGS = 16
Results = dict[str, Tensor]
"""Outputs, and gradients of inputs, in float64."""


@dataclass(frozen=True)
class Verdict:
    """What became of a call, and why."""

    call: Call
    outcome: Outcome
    reason: str = ""


class Refused(Exception):
    """A call was refused in one line."""


def judge(call: Call) -> Verdict:
    """Return what became of a call by every version of the operators."""
    found: dict[str, Results | str] = {}
    with _kernels(call):
        for version in choice.VERSIONS:
            try:
                found[version] = _given(call, version)
            except Refused as error:
                found[version] = f"refused: {error}"
            except Exception as error:
                return Verdict(call, "crash", f"{version}: {type(error).__name__}: {str(error).splitlines()[:1]}")
        words = {result if isinstance(result, str) else "computed" for result in found.values()}
        if len(words) > 1:
            return Verdict(call, "different", f"some versions refuse: {sorted(words)}")
        if words != {"computed"}:
            return Verdict(call, "refused", words.pop())
        if call.spoiled:
            return Verdict(call, "different", "a mask that is not one of tokens is taken")
        problem = ""
        for neighbours in (1, 8):
            try:
                truth, own, allowed = _truth(call, neighbours)
            except Exception as error:
                return Verdict(call, "crash", f"in clean memory: {type(error).__name__}: {str(error).splitlines()[:1]}")
            if not (problem := _first_problem(call.dtype, found, truth, own, allowed)):
                return Verdict(call, "equal")
    return Verdict(call, "different", problem)


def _first_problem(
    dtype: torch.dtype, found: Mapping[str, Results | str], truth: Results, own: Results, allowed: dict[str, float]
) -> str:
    for version, results in found.items():
        assert not isinstance(results, str)
        for name, expected in truth.items():
            # The equations themselves may leave the range of a type; faster versions have to stay in that of half ones.
            excused = version == "slow" or dtype == torch.float32
            asked = expected.where(own[name].isfinite(), torch.nan) if excused else expected
            if problem := _problem(results.get(name), asked, allowed[name]):
                return f"{version}: {name}: {problem}"
    return ""


@contextmanager
def _kernels(call: Call) -> Iterator[None]:
    threads, small = torch.get_num_threads(), choice.SMALL
    choice.SMALL = call.small
    torch.set_num_threads(call.threads)
    try:
        yield
    finally:
        choice.SMALL = small
        torch.set_num_threads(threads)


def _given(call: Call, version: str) -> Results:
    """Return the results of the call as it is given."""
    inputs = {key: call.layouts.get(key, contiguous)(value.to(call.dtype)) for key, value in call.values.items()}
    with choice.operators(version):
        try:
            return _run(call, call.function, inputs, call.given_mask)
        except (ValueError, KattnError) as error:
            if "\n" in str(error):
                raise
            raise Refused(str(error)) from error


def _clean(call: Call, dtype: torch.dtype, values: Results | None = None, back: Largest | None = None) -> Results:
    """Return the results of the slow version in clean memory; ``back`` looks at the numbers of the backward pass."""
    inputs = {key: value.to(dtype).clone() for key, value in (values or call.values).items()}
    with choice.operators("slow"):
        return _run(call, call.equations or call.function, inputs, call.mask, back)


class Largest(TorchDispatchMode):
    """The largest finite number of any operation within."""

    number = 0.0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for z in tree_leaves(found):
            if isinstance(z, Tensor) and z.is_floating_point():
                self.number = max(self.number, _largest(z))
        return found


def _run(call: Call, function: Function, inputs: Results, mask: Tensor | None, back: Largest | None = None) -> Results:
    leaves = {key: value.detach().requires_grad_(call.gradient) for key, value in inputs.items()}
    with torch.set_grad_enabled(call.gradient):
        outputs = function(leaves, mask)
        if call.mask is not None and "out" in outputs:
            # What stands at the padding means nothing; that no version leaves it infinite is the mechanisms' contract.
            there = call.mask[:, None, :, None] if outputs["out"].ndim == 4 else call.mask[..., None]
            outputs["out"] = outputs["out"].masked_fill(~there, 0)
    results = {name: out.detach().double() for name, out in outputs.items()}
    if call.gradient:
        # Where there are no tokens, equations that go token by token return what no input has a part in.
        differentiable = [out for out in outputs.values() if out.requires_grad]
        cotangents = [_cotangent(out, call.expanded_gradient, call.dtype) for out in differentiable]
        with back or nullcontext():
            grads = (
                torch.autograd.grad(differentiable, list(leaves.values()), cotangents, allow_unused=True)
                if differentiable
                else [None] * len(leaves)
            )
        for (key, leaf), grad in zip(leaves.items(), grads, strict=True):
            results[f"gradient of {key}"] = torch.zeros_like(leaf).double() if grad is None else grad.double()
    return results


def _cotangent(out: Tensor, expanded: bool, dtype: torch.dtype) -> Tensor:
    if expanded:
        return torch.ones((), dtype=out.dtype).expand(out.shape)
    line = torch.linspace(-1, 1, out.numel(), dtype=torch.float64).to(dtype).to(out.dtype)
    return line.reshape(out.shape)


def _truth(call: Call, neighbours: int) -> tuple[Results, Results, dict[str, float]]:
    """Return the results in float64, those of the slow version in the call's type, and what error is allowed."""
    limits = torch.finfo(call.dtype)
    own_type = torch.float32 if call.dtype == torch.float64 else call.dtype
    finer = limits.eps / torch.finfo(own_type).eps
    largest_met = Largest()
    truth, own = _clean(call, torch.float64, back=largest_met if neighbours > 1 else None), _clean(call, own_type)
    errors = {name: finer * _distance(own[name], expected) for name, expected in truth.items()}
    changes = dict.fromkeys(truth, 0.0)
    for _ in range(neighbours):
        near = {key: _neighbour(value, call.dtype) for key, value in call.values.items()}
        there = _clean(call, torch.float64, near)
        for name in truth:
            changes[name] = max(changes[name], _distance(there[name], truth[name]))
        if neighbours > 1:
            again = _clean(call, own_type, near)
            for name in truth:
                errors[name] = max(errors[name], finer * _distance(again[name], there[name]))
    allowed = {}
    for name, expected in truth.items():
        largest = _largest(expected)
        if name.startswith("gradient"):
            largest = max(largest, largest_met.number)
        rounding = limits.eps * (largest + limits.smallest_normal)
        allowed[name] = TIMES * (errors[name] + changes[name]) + ROUNDINGS * rounding
    return {name: value.where(value.abs() < limits.max, torch.nan) for name, value in truth.items()}, own, allowed


def _neighbour(value: Tensor, dtype: torch.dtype) -> Tensor:
    """Return each number, or one beside it that the type has."""
    step = torch.finfo(dtype).eps * torch.randint(-1, 2, value.shape)
    return (value * (1 + step)).to(dtype).double()


def _problem(found: Tensor | None, expected: Tensor, allowed: float) -> str:
    """Return what is wrong with a result, nothing if it is as near the truth as it must be."""
    if found is None or found.shape != expected.shape:
        return f"shape {None if found is None else tuple(found.shape)} in place of {tuple(expected.shape)}"
    if not found[expected.isfinite()].isfinite().all():
        return "not finite where the truth is"
    distance = _distance(found, expected)
    return f"{distance:.3g} from the truth, allowed {allowed:.3g}" if distance > allowed else ""


def _distance(found: Tensor, expected: Tensor) -> float:
    """Return the largest difference where both are finite."""
    return _largest((found - expected)[found.isfinite() & expected.isfinite()])


def _largest(z: Tensor) -> float:
    z = z[z.isfinite()]
    return z.abs().max().item() if z.numel() else 0.0


def fuzz(seed: int, numbers: range) -> list[Verdict]:
    """Return what became of the calls with these numbers."""
    return [judge(call_of(seed, number)) for number in numbers]


def table(verdicts: list[Verdict]) -> str:
    """Return how many calls ended how, by subject."""
    counts = Counter((verdict.call.subject, verdict.outcome) for verdict in verdicts)
    subjects = sorted({verdict.call.subject for verdict in verdicts})
    lines = [f"{'':26}{'calls':>8}" + "".join(f"{outcome:>11}" for outcome in OUTCOMES)]
    for subject in (*subjects, "all"):
        these = subjects if subject == "all" else [subject]
        row = [sum(counts[each, outcome] for each in these) for outcome in OUTCOMES]
        lines.append(f"{subject:26}{sum(row):8}" + "".join(f"{n:11}" for n in row))
    return "\n".join(lines)


def main() -> int:
    """Run calls, print what differs and the table; return 1 if anything did."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first call")
    parser.add_argument("--calls", type=int, default=1000)
    parser.add_argument("--only", type=int, help="this call alone")
    asked = parser.parse_args()
    numbers = range(asked.first, asked.first + asked.calls) if asked.only is None else range(asked.only, asked.only + 1)
    verdicts = []
    for number in numbers:
        verdicts.append(verdict := judge(call_of(asked.seed, number)))
        if verdict.outcome in ("different", "crash") or asked.only is not None:
            print(f"{number}: {verdict.outcome}: {verdict.call.subject}: {verdict.reason}", flush=True)
            print(f"    {verdict.call.text}", flush=True)
    print(table(verdicts))
    return int(any(verdict.outcome in ("different", "crash") for verdict in verdicts))


if __name__ == "__main__":
    torch.set_num_threads(1)
    sys.exit(main())
