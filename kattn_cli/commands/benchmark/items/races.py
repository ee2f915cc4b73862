"""Our operators against what one would otherwise run: programs that take turns, and the ratios we ask for.

C = 384 in 8 heads, forward and backward. ``slow`` is the operator by its equations, one after the other; where these go
token by token, which takes N² numbers or minutes, the opponent is ``plain``: torch's operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch
from torch import Tensor

from kattn_cli.commands.benchmark.item import DIM, HEADS, Check, Outcome, Place, by_version, forward_backward
from kattn_cli.costs.roofline import (
    Work,
    attention_work,
    causal_tssa_work,
    primal_work,
    projection_work,
    together,
    tssa_work,
)
from kattn_cli.costs.timing import Program
from kattn_cli.kernels.causal_tssa.operator import causal_tssa
from kattn_cli.kernels.primal.equations import cosine_scores, ksvd_objective, ksvd_objective_of
from kattn_cli.kernels.tssa.equations import tssa_naive
from kattn_cli.kernels.tssa.operator import tssa
from kattn_cli.runs.csv_rows import Row
from kattn_cli.statistics.intervals import median_interval

Bounds = Mapping[str, float]
"""By type of device."""
FAST, PLAIN, SLOW, COMPILED, FUSED = "fast", "plain", "slow", "compiled", "fused softmax"
LONG, LONGER, IMAGE = 4096, 16384, 197
PRIMAL_DIRECTIONS, PRIMAL_ROWS, PURSUIT = 32, 320, 4


@dataclass(frozen=True)
class Race:
    """Programs that are compared, ours first; ``work``: what ours must do at least, for the roofline.

    ``speed``: the least ratio of each opponent's time to ours; ``memory``: the greatest of our peak to its.
    """

    says: str
    programs: Callable[[Place], dict[str, Program]]
    work: Callable[[Place], Work]
    speed: Mapping[str, Bounds]
    memory: Mapping[str, Bounds] = field(default_factory=dict)

    def __call__(self, place: Place) -> Outcome:
        """Let the programs take turns, and compare them round by round."""
        programs = self.programs(place)
        peaks = {name: place.peak_memory(program) for name, program in programs.items()}
        times = place.in_turns(programs)
        rows: list[Row] = [
            {"program": name, "round": number, "milliseconds": round(value, 5), "peak_mib": round(peaks[name], 3)}
            for name, values in times.items()
            for number, value in enumerate(values, 1)
        ]
        checks = []
        for other in list(programs)[1:]:
            ratios = [theirs / ours for theirs, ours in zip(times[other], times[FAST], strict=True)]
            bound = self.speed.get(other, {}).get(place.device.type)
            says = f"times as fast as {other}"
            checks.append(Check("time", FAST, other, *median_interval(ratios), "at least", bound, says))
            share, bound = peaks[FAST] / peaks[other], self.memory.get(other, {}).get(place.device.type)
            says = f"of the memory of {other}"
            checks.append(Check("memory", FAST, other, share, share, share, "at most", bound, says))
        floor = self.work(place).milliseconds(place.ceilings)
        reached = median_interval([floor / value for value in times[FAST]])
        checks.append(Check("roofline", FAST, "the machine", *reached, "at least", None, "of the roofline"))
        return Outcome(rows, checks)


def _tssa_operator(place: Place) -> dict[str, Program]:
    inputs = [*place.heads(1, LONG), torch.ones(HEADS, device=place.device)]
    eager = forward_backward(tssa_naive, inputs)
    compiled = forward_backward(torch.compile(tssa_naive), inputs)
    return {FAST: forward_backward(tssa, inputs), SLOW: eager, COMPILED: compiled}


def _causal_tssa_operator(place: Place) -> dict[str, Program]:
    bias = torch.zeros(1, HEADS, LONG, 1, device=place.device)
    program = forward_backward(causal_tssa, [*place.heads(1, LONG), torch.ones(HEADS, device=place.device), bias])
    return _versions(program, PLAIN)


def _primal_operator(place: Place) -> dict[str, Program]:
    q, k = place.heads(1, LONG, 2)
    (rows,) = place.heads(1, PRIMAL_ROWS)
    w_e, w_r = (place.draw(HEADS, PRIMAL_ROWS, PRIMAL_DIRECTIONS) for _ in range(2))
    regulariser = place.draw(HEADS, PRIMAL_DIRECTIONS)
    return _versions(forward_backward(_scores_and_objective, [q, k, rows, w_e, w_r, regulariser]), PLAIN)


def _scores_and_objective(
    q: Tensor, k: Tensor, rows: Tensor, w_e: Tensor, w_r: Tensor, regulariser: Tensor
) -> tuple[Tensor, Tensor]:
    scores, energy = cosine_scores(q, k, rows, w_e, w_r)
    if energy is None:
        e, r = scores.chunk(2, -1)
        return scores, ksvd_objective(e, r, w_e, w_r, regulariser, "paper")
    return scores, ksvd_objective_of(energy, scores.shape[-2], w_e, w_r, regulariser, "paper")


def _tssa_layer(place: Place) -> dict[str, Program]:
    return {
        FAST: place.trained(place.mechanism("tssa", LONGER), 1, LONGER),
        FUSED: place.trained(place.mechanism("softmax", LONGER), 1, LONGER),
    }


def _pursuit(place: Place, batch: int, tokens: int) -> dict[str, Program]:
    return _versions(place.trained(place.mechanism("rpc", tokens, iterations=PURSUIT), batch, tokens), SLOW)


def _pursuit_work(place: Place, batch: int, tokens: int) -> Work:
    attentions = [attention_work(batch, tokens, DIM, place.itemsize)] * PURSUIT
    return together(projection_work(batch, tokens, DIM, 3 * DIM, place.itemsize), *attentions)


def _versions(program: Program, opponent: str) -> dict[str, Program]:
    return {version: by_version(program, version) for version in (FAST, opponent)}


RACES = {
    "tssa_operator": Race(
        "TSSA operator alone, N = 4,096",
        _tssa_operator,
        speed={SLOW: {"cpu": 3, "cuda": 4}, COMPILED: {"cuda": 1.5}},
        work=lambda place: tssa_work(LONG * DIM, place.itemsize),
    ),
    "tssa_layer": Race(
        "TSSA with projections, N = 16,384",
        _tssa_layer,
        speed={FUSED: {"cpu": 40, "cuda": 10}},
        work=lambda place: together(
            tssa_work(LONGER * DIM, place.itemsize), projection_work(1, LONGER, DIM, 2 * DIM, place.itemsize)
        ),
    ),
    "rpc_long": Race(
        "RPC, 4 iterations, with projections, N = 4,096",
        lambda place: _pursuit(place, 1, LONG),
        speed={SLOW: {"cpu": 2.5, "cuda": 5}},
        memory={SLOW: {"cpu": 1 / 20, "cuda": 1 / 20}},
        work=lambda place: _pursuit_work(place, 1, LONG),
    ),
    "rpc_image": Race(
        "RPC, 4 iterations, with projections, N = 197, batch 32",
        lambda place: _pursuit(place, 32, IMAGE),
        speed={SLOW: {"cpu": 1.3, "cuda": 2}},
        work=lambda place: _pursuit_work(place, 32, IMAGE),
    ),
    "primal_operator": Race(
        "Primal operator alone, data-dependent, s = 32, N = 4,096",
        _primal_operator,
        speed={PLAIN: {"cpu": 1.5, "cuda": 2}},
        work=lambda place: primal_work(LONG, DIM, HEADS, PRIMAL_DIRECTIONS, place.itemsize),
    ),
    "causal_tssa_operator": Race(
        "Causal TSSA operator alone, N = 4,096",
        _causal_tssa_operator,
        speed={PLAIN: {"cpu": 3, "cuda": 4}},
        work=lambda place: causal_tssa_work(LONG * DIM, place.itemsize),
    ),
}
