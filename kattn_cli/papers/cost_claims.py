"""Claims about costs, each judged by one measurement with its own spread instead of seeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import pandas as pd

from kattn_cli.figures.complexity import DRAWN_PASS
from kattn_cli.papers.claim import Finding, Verdict
from kattn_cli.papers.costs import beside_the_papers
from kattn_cli.papers.evidence import Evidence
from kattn_cli.tables.complexity import SETTING, exponents
from kattn_cli.tables.costs import DUAL, RANDOMISED, solver_ratios

LINEAR = 1.2
SAME_MODEL_SETTING = ["n", "dtype", "batch"]


def scaling(attention: str, evidence: Evidence) -> list[Finding]:
    """Judge the exponent of time in N, on the upper half of the sizes."""
    if evidence.costs.empty:
        return []
    fitted = exponents(evidence.costs)
    fitted = fitted[fitted["pass"] == DRAWN_PASS].set_index("attention")
    fitted = fitted[~fitted.index.duplicated()]
    if attention not in fitted.index:
        return []
    row = fitted.loc[attention]
    exponent = float(row["milliseconds_exponent"])
    softmax = fitted["milliseconds_exponent"].get("softmax", math.nan)
    beside = (
        f"memory {row['peak_mib_exponent']:.2f}; softmax {softmax:.2f}; N from {row['from_n']:,} to {row['to_n']:,}, "
        f"{evidence.costs['device'].iloc[0]}"
    )
    verdict = _verdict(exponent < LINEAR, not exponent < LINEAR)
    return [Finding(attention, exponent, exponent, exponent, 1, verdict, beside)]


def less_than(attention: str, bases: Sequence[str], quantity: str, evidence: Evidence) -> list[Finding]:
    """Judge the cost of a forward pass over that of each base, at the most tokens that both were measured at."""
    if evidence.costs.empty:
        return []
    costs = evidence.costs
    costs = costs[(costs["status"] == "ok") & (costs["pass"] == "forward")]
    same = ["device", *SETTING, "n"]
    found = []
    for base in bases:
        ours, theirs = (costs[costs["label"] == label] for label in (attention, base))
        both = ours.merge(theirs, on=same, suffixes=("", "_base")).sort_values("n")
        if both.empty:
            continue
        at = both.iloc[-1]
        beside = f"at N = {at['n']:,}, {at['device']}; {_from(both['n'], both[quantity] / both[f'{quantity}_base'])}"
        spreads = (at["spread"], at["spread_base"]) if quantity == "milliseconds" else (0.0, 0.0)
        found.append(_share(f"{attention} against {base}", (at[quantity], at[f"{quantity}_base"]), spreads, 1, beside))
    return found


def _from(sizes: pd.Series, shares: pd.Series) -> str:
    """Return from which N on it is less, in words."""
    more = sizes[shares >= 1]
    if more.empty:
        return f"less from N = {sizes.min():,} on, the least measured"
    above = sizes[sizes > more.max()]
    return f"less from N = {above.min():,} on" if len(above) else "at no N less"


def decoding(attention: str, quantity: str, evidence: Evidence) -> list[Finding]:
    """Judge one more token's cost over softmax's behind each context; memory: what is kept and the peak of a call."""
    costs = evidence.decoding
    if costs.empty:
        return []
    costs = costs[costs["status"] == "ok"]
    same = ["device", "dim", "heads", "batch", "dtype", "context"]
    ours, base = (costs[costs["attention"] == name] for name in (attention, "softmax"))
    found = []
    for _, row in ours.merge(base, on=same, suffixes=("", "_base")).sort_values("context").iterrows():
        label = f"{attention}, context {row['context']:,}"
        if quantity == "memory":
            value = (row["state_mib"] + row["peak_mib"]) / (row["state_mib_base"] + row["peak_mib_base"])
            low = high = value
        else:
            value = row["milliseconds"] / row["milliseconds_base"]
            low = row["milliseconds_low"] / row["milliseconds_high_base"]
            high = row["milliseconds_high"] / row["milliseconds_low_base"]
        verdict = _verdict(high < 1, low > 1)
        found.append(Finding(label, float(value), float(low), float(high), 1, verdict, str(row["device"])))
    return found


def race(evidence: Evidence) -> list[Finding]:
    """Judge how many times the dual's time a randomised SVD takes, for each task and kernel."""
    if evidence.races.empty:
        return []
    found = []
    table = solver_ratios(evidence.races)
    for _, row in table[table["solver"] == RANDOMISED].iterrows():
        low, high = float(row["ratio_low"]), float(row["ratio_high"])
        same = table[(table["task"] == row["task"]) & (table["kernel"] == row["kernel"])]
        others = same[~same["solver"].isin([RANDOMISED, DUAL])]
        beside = ", ".join(f"{one['solver']} {one['ratio']:.3g}" for _, one in others.iterrows())
        label = f"{row['task']}, {row['kernel']}, N = {row['n']:,}"
        verdict = _verdict(low > 1, high < 1)
        found.append(Finding(label, float(row["ratio"]), low, high, int(row["rounds"]), verdict, beside))
    return found


def share_of(
    base: str,
    ours: tuple[str, ...],
    what: str,
    quantity: Literal["time", "memory"],
    below: float,
    evidence: Evidence,
) -> list[Finding]:
    """Judge time a sample, or weights, optimizer's state and peak memory, over those of the model ``base``.

    Args:
        base, ours: models as ``kattn model-costs`` calls them.
        what: ``training step`` or ``forward``.
        below: where the share must be for the claim to hold.
    """
    if evidence.models.empty:
        return []
    known = evidence.models
    known = known[(known["status"] == "ok") & (known["version"] == "fast") & known["model"].isin([base, *ours])]
    if base not in set(known["model"]):
        return []
    known = known.drop_duplicates(["model", "pass", *SAME_MODEL_SETTING], keep="last")
    table = beside_the_papers(known.sort_values("model", key=lambda names: names != base, kind="stable"))
    table = table[table["pass"] == what].set_index(["model", *SAME_MODEL_SETTING])
    found = []
    for (model, *same), row in table.iterrows():
        compared = (base, *same)
        if model in ours and compared in table.index:
            n, dtype, batch = same
            beside = f"of {base}; batch {batch}, {row['device']}, {dtype}"
            of_base, label = table.loc[compared], f"{model}, {n:,} tokens"
            costs, spreads = (row["memory_mib"], of_base["memory_mib"]), (0.0, 0.0)
            if quantity == "time":
                costs, spreads = (row["milliseconds"], of_base["milliseconds"]), (row["spread"], of_base["spread"])
            printed = float(row[f"published_{quantity}_ratio"])
            found.append(_share(label, costs, spreads, below, beside, printed))
    return found


def _share(
    label: str,
    costs: tuple[float, float],
    spreads: tuple[float, float],
    below: float,
    beside: str,
    paper_number: float = math.nan,
) -> Finding:
    """Judge the first of two costs over the second, with the quartiles of both.

    Args:
        spreads: interquartile ranges, nan where there is none.
    """
    (ours, base), (wide, base_wide) = costs, (0.0 if math.isnan(one) else one / 2 for one in spreads)
    low, high = max(ours - wide, 0.0) / (base + base_wide), (ours + wide) / max(base - base_wide, 1e-9)
    verdict = _verdict(high < below, low >= below)
    return Finding(label, ours / base, low, high, 1, verdict, beside, paper_number=paper_number)


def _verdict(holds: bool, does_not_hold: bool) -> Verdict:
    return Verdict.holds if holds else Verdict.does_not_hold if does_not_hold else Verdict.cannot_be_told
