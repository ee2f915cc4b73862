"""How much of the memory's bandwidth the TSSA operator uses, where nothing fits a cache."""

from __future__ import annotations

import torch

from kattn_cli.commands.benchmark.item import DIM, HEADS, Check, Outcome, Place, forward_backward
from kattn_cli.costs.roofline import causal_tssa_work, tssa_work
from kattn_cli.kernels.causal_tssa.operator import causal_tssa
from kattn_cli.kernels.tssa.operator import tssa
from kattn_cli.runs.csv_rows import Row
from kattn_cli.statistics.intervals import median_interval

TOKENS = 2**17
SHARE = {"cuda": 0.6}


def bandwidth_shares(place: Place) -> Outcome:
    """Measure the bytes that the operator must move, over its time, as a share of a copy's bandwidth."""
    eta, bias = torch.ones(HEADS, device=place.device), torch.zeros(1, HEADS, TOKENS, 1, device=place.device)
    (w,) = place.heads(1, TOKENS)
    programs = {"tssa": forward_backward(tssa, [w, eta]), "causal tssa": forward_backward(causal_tssa, [w, eta, bias])}
    moved = {
        "tssa": tssa_work(TOKENS * DIM, place.itemsize),
        "causal tssa": causal_tssa_work(TOKENS * DIM, place.itemsize),
    }
    times = place.in_turns(programs)
    rows: list[Row] = []
    checks = []
    for name, values in times.items():
        rates = [moved[name].bytes / (value / 1e3) for value in values]
        rows += [
            {
                "program": name,
                "n": TOKENS,
                "round": number,
                "milliseconds": round(value, 5),
                "gb_per_s": round(rate / 1e9, 3),
            }
            for number, (value, rate) in enumerate(zip(values, rates, strict=True), 1)
        ]
        shares = [rate / place.ceilings.bandwidth for rate in rates]
        bound = SHARE.get(place.device.type) if name == "tssa" else None
        says = f"{name}: of a copy's {place.ceilings.bandwidth / 1e9:.0f} GB/s"
        checks.append(Check("bandwidth", name, "a copy", *median_interval(shares), "at least", bound, says))
    return Outcome(rows, checks)
