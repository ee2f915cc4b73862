"""Claims about costs: facts, each one measurement on one machine with the spread of its rounds, and no test."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Literal

import pandas as pd

from kattn_cli.figures.complexity import DRAWN_PASS
from kattn_cli.papers.claim import Fact, Finding, Scale, Truth, truth_of
from kattn_cli.papers.costs import beside_the_papers
from kattn_cli.papers.evidence import Evidence
from kattn_cli.tables.complexity import SETTING, exponents
from kattn_cli.tables.costs import DUAL, RANDOMISED, solver_ratios

LINEAR = 1.2
"""The exponent below which we call a cost linear; no paper states one."""
LONG = 8_192
"""Tokens from which on an exponent says something of long sequences: below, what does not grow with N counts."""
GROWTH, LENGTHS = "time_exponents", (2_048, 32_768)
"""The benchmark's item that measures exponents, and the sizes from which to which it does."""
SAME_MODEL_SETTING = ["n", "dtype", "batch"]


def scaling(attention: str, evidence: Evidence) -> list[Finding]:
    """Return the exponent of time in N, with its interval, where the longest sequences were measured."""
    if fitted := [*_in_benchmark(attention, evidence), *_over_sizes(attention, evidence)]:
        return [max(fitted, key=lambda fact: fact.reached.tokens)]
    return []


def _in_benchmark(attention: str, evidence: Evidence) -> Iterator[Fact]:
    if evidence.ratios.empty:
        return
    rows = evidence.ratios
    rows = rows[(rows["item"] == GROWTH) & (rows["quantity"] == "time") & (rows["ours"] == attention)]
    for _, row in rows.tail(1).iterrows():
        beside = f"by kattn benchmark; N from {LENGTHS[0]:,} to {LENGTHS[1]:,}, {row['device']}"
        yield _exponent(attention, row["value"], row["low"], row["high"], beside, LENGTHS[1])


def _over_sizes(attention: str, evidence: Evidence) -> Iterator[Fact]:
    if evidence.costs.empty:
        return
    fitted = exponents(evidence.costs)
    fitted = fitted[fitted["pass"] == DRAWN_PASS].sort_values("to_n", kind="stable").set_index("attention")
    fitted = fitted[~fitted.index.duplicated(keep="last")]
    if attention not in fitted.index:
        return
    row = fitted.loc[attention]
    softmax = fitted["milliseconds_exponent"].get("softmax", math.nan)
    beside = (
        f"memory {row['peak_mib_exponent']:.2f}; softmax {softmax:.2f}; N from {row['from_n']:,} to {row['to_n']:,}, "
        f"{evidence.costs['device'].iloc[0]}"
    )
    value, low, high = (row[f"milliseconds_exponent{end}"] for end in ("", "_low", "_high"))
    yield _exponent(attention, value, low, high, beside, int(row["to_n"]))


def _exponent(attention: str, value: float, low: float, high: float, beside: str, tokens: int) -> Fact:
    low, high = (value if math.isnan(end) else end for end in (low, high))
    truth, reached = truth_of(low, high, LINEAR), Scale(tokens=tokens)
    return Fact(attention, beside, reached=reached, value=value, low=low, high=high, truth=truth)


def less_than(attention: str, bases: Sequence[str], quantity: str, evidence: Evidence) -> list[Finding]:
    """Return the cost of a forward pass over that of each base, at the most tokens that both were measured at."""
    if evidence.costs.empty:
        return []
    costs = evidence.costs
    costs = costs[(costs["status"] == "ok") & (costs["pass"] == "forward")]
    same = ["device", *SETTING, "n"]
    found: list[Finding] = []
    for base in bases:
        ours, theirs = (costs[costs["label"] == label] for label in (attention, base))
        both = ours.merge(theirs, on=same, suffixes=("", "_base")).sort_values("n")
        if both.empty:
            continue
        at = both.iloc[-1]
        beside = f"at N = {at['n']:,}, {at['device']}; {_from(both['n'], both[quantity] / both[f'{quantity}_base'])}"
        spreads = (at["spread"], at["spread_base"]) if quantity == "milliseconds" else (0.0, 0.0)
        costs_at, reached = (at[quantity], at[f"{quantity}_base"]), Scale(tokens=int(at["n"]))
        found.append(_share(f"{attention} against {base}", costs_at, spreads, 1, beside, reached))
    return found


def _from(sizes: pd.Series, shares: pd.Series) -> str:
    """Return from which N on it is less, in words."""
    more = sizes[shares >= 1]
    if more.empty:
        return f"less from N = {sizes.min():,} on, the least measured"
    above = sizes[sizes > more.max()]
    return f"less from N = {above.min():,} on" if len(above) else "at no N less"


def decoding(attention: str, quantity: str, evidence: Evidence) -> list[Finding]:
    """Return one more token's cost over softmax's behind each context; memory: what is kept and the peak of a call."""
    costs = evidence.decoding
    if costs.empty:
        return []
    costs = costs[costs["status"] == "ok"]
    same = ["device", "dim", "heads", "batch", "dtype", "context"]
    ours, base = (costs[costs["attention"] == name] for name in (attention, "softmax"))
    found: list[Finding] = []
    for _, row in ours.merge(base, on=same, suffixes=("", "_base")).sort_values("context").iterrows():
        label = f"{attention}, context {row['context']:,}"
        if quantity == "memory":
            value = (row["state_mib"] + row["peak_mib"]) / (row["state_mib_base"] + row["peak_mib_base"])
            low = high = value
        else:
            value = row["milliseconds"] / row["milliseconds_base"]
            low = row["milliseconds_low"] / row["milliseconds_high_base"]
            high = row["milliseconds_high"] / row["milliseconds_low_base"]
        value, low, high = float(value), float(low), float(high)
        truth = truth_of(low, high, 1)
        found.append(Fact(label, str(row["device"]), value=value, low=low, high=high, truth=truth))
    return found


def race(evidence: Evidence) -> list[Finding]:
    """Return how many times the dual's time a randomised SVD takes, for each task and kernel."""
    if evidence.races.empty:
        return []
    found: list[Finding] = []
    table = solver_ratios(evidence.races)
    for _, row in table[table["solver"] == RANDOMISED].iterrows():
        low, high = float(row["ratio_low"]), float(row["ratio_high"])
        same = table[(table["task"] == row["task"]) & (table["kernel"] == row["kernel"])]
        others = same[~same["solver"].isin([RANDOMISED, DUAL])]
        beside = ", ".join(f"{one['solver']} {one['ratio']:.3g}" for _, one in others.iterrows())
        label = f"{row['task']}, {row['kernel']}, N = {row['n']:,}"
        truth = Truth.true if low > 1 else Truth.false if high < 1 else Truth.unclear
        beside = f"range over {row['rounds']:.0f} rounds; {beside}"
        reached = Scale(points=int(row["n"]))
        found.append(Fact(label, beside, reached=reached, value=float(row["ratio"]), low=low, high=high, truth=truth))
    return found


def share_of(
    base: str,
    ours: tuple[str, ...],
    what: str,
    quantity: Literal["time", "memory"],
    below: float | None,
    evidence: Evidence,
) -> list[Finding]:
    """Return time a sample, or weights, optimizer's state and peak memory, over those of the model ``base``.

    Args:
        base, ours: models as ``kattn model-costs`` calls them.
        what: ``training step`` or ``forward``.
        below: where the paper says that the share lies; None where it says nothing that can be held against it.
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
    found: list[Finding] = []
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
            reached = Scale(tokens=int(n), batch=int(batch))
            found.append(_share(label, costs, spreads, below, beside, reached, printed))
    return found


def _share(
    label: str,
    costs: tuple[float, float],
    spreads: tuple[float, float],
    below: float | None,
    beside: str,
    reached: Scale,
    paper_number: float = math.nan,
) -> Fact:
    """Return the first of two costs over the second, with the quartiles of both.

    Args:
        spreads: interquartile ranges, nan where there is none.
    """
    (ours, base), (wide, base_wide) = costs, (0.0 if math.isnan(one) else one / 2 for one in spreads)
    low, high = max(ours - wide, 0.0) / (base + base_wide), (ours + wide) / max(base - base_wide, 1e-9)
    truth = Truth.no_bound if below is None else truth_of(low, high, below)
    return Fact(label, beside, paper_number, reached, value=ours / base, low=low, high=high, truth=truth)
