"""How time and memory grow: exponents in N, and what one more decoded token costs over the context."""

from __future__ import annotations

import statistics
from typing import Any

from kattn_cli.attention import ATTENTIONS
from kattn_cli.commands.benchmark.item import DIM, Check, Outcome, Place, by_version
from kattn_cli.costs.decoding import decoding_costs
from kattn_cli.runs.csv_rows import Row
from kattn_cli.statistics.intervals import power_law

LENGTHS = tuple(2**k for k in range(11, 16))
LINEAR = 1.1
"""The exponent that counts as linear."""
TIMED: dict[str, dict[str, Any]] = {
    "tssa": {},
    "causal tssa": {"causal": True},
    "primal": {},
    "causal primal": {"causal": True, "projection": "data-independent"},
}
REMEMBERED = tuple(2**k for k in range(10, 14))
SMALL_DIM, SMALL_HEADS = 64, 2
"""Exponents of memory do not depend on the width, which is kept small so that the naive ones fit."""
NAIVE = ("softmax", "symmetric", "rpc")
CONTEXTS = (1024, 4096, 16384, 65536)
FLAT = 0.05
"""The share by which time and memory of a token may differ between contexts."""
DECODING: dict[str, dict[str, Any]] = {
    "softmax": {},
    "tssa": {},
    "primal": {"projection": "data-independent"},
}


def time_exponents(place: Place) -> Outcome:
    """Measure forward and backward with projections, N from 2,048 to 32,768; a mechanism's sizes take turns."""
    rows: list[Row] = []
    checks = []
    for label, options in TIMED.items():
        programs = {str(n): place.trained(place.mechanism(label.split()[-1], n, **options), 1, n) for n in LENGTHS}
        times = place.in_turns(programs)
        rows += [
            {"program": label, "n": n, "round": number, "milliseconds": round(value, 5)}
            for n, values in times.items()
            for number, value in enumerate(values, 1)
        ]
        exponent = power_law(LENGTHS, [statistics.median(times[str(n)]) for n in LENGTHS])
        checks.append(Check("time", label, "N", *exponent, "at most", LINEAR, f"{label}: exponent of time"))
    return Outcome(rows, checks)


def memory_exponents(place: Place) -> Outcome:
    """Measure peak memory of forward and backward of every mechanism, and of naive ones, N from 1,024 to 8,192."""
    rows: list[Row] = []
    checks = []
    programs = [(name, "fast", LINEAR) for name in ATTENTIONS] + [(name, "slow", None) for name in NAIVE]
    for name, version, bound in programs:
        lengths = REMEMBERED if version == "fast" else REMEMBERED[:-1]
        label = name if version == "fast" else f"{name} ({version})"
        peaks = []
        for n in lengths:
            place.on_turn(label)
            module = place.mechanism(name, n, dim=SMALL_DIM, heads=SMALL_HEADS)
            peaks.append(place.peak_memory(by_version(place.trained(module, 1, n, SMALL_DIM), version)))
            rows.append({"program": label, "n": n, "peak_mib": round(peaks[-1], 4)})
        checks.append(
            Check("memory", label, "N", *power_law(lengths, peaks), "at most", bound, f"{label}: exponent of memory")
        )
    return Outcome(rows, checks)


def decoding(place: Place) -> Outcome:
    """Measure time and state of one more token after 1,024 to 65,536, beside softmax attention with its cache."""
    rows: list[Row] = []
    checks = []
    for name, options in DECODING.items():
        place.on_turn(name)
        module = place.mechanism(name, 2 * CONTEXTS[-1], causal=True, **options).eval()
        costs = decoding_costs(module, CONTEXTS, dim=DIM, batch=1, seconds=place.seconds * place.rounds)
        for context, cost in costs.items():
            rows.append(
                {
                    "program": name,
                    "n": context,
                    "milliseconds": round(cost.milliseconds, 5),
                    "state_mib": round(cost.state_mib, 6),
                    "peak_mib": round(cost.peak_mib, 6),
                }
            )
        flat = None if name == "softmax" else 1 + FLAT
        furthest = max(costs.values(), key=lambda cost: max(cost.ratio, 1 / cost.ratio))
        times = (furthest.ratio, furthest.ratio_low, furthest.ratio_high)
        if furthest.ratio < 1:
            times = (1 / furthest.ratio, 1 / furthest.ratio_high, 1 / furthest.ratio_low)
        held = [cost.state_mib + cost.peak_mib for cost in costs.values()]
        grown = max(held) / min(held)
        ends = f"context {CONTEXTS[0]:,} to {max(costs):,}"
        checks.append(Check("time", name, "context", *times, "at most", flat, f"{name}: time, {ends}"))
        says = f"{name}: memory, {ends}"
        checks.append(Check("memory", name, "context", grown, grown, grown, "at most", flat, says))
    return Outcome(rows, checks)
