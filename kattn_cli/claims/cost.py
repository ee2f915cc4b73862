"""Claims about cost, each judged by one measurement with its own spread instead of seeds."""

from __future__ import annotations

import math

from kattn_cli.claims.evidence import Evidence
from kattn_cli.claims.finding import Finding, Verdict
from kattn_cli.figures.complexity import DRAWN_PASS, exponents
from kattn_cli.figures.kernel_pca import DUAL, RANDOMISED, ratios

LINEAR = 1.2


def scaling(attention: str, evidence: Evidence) -> list[Finding]:
    """The exponent of time in N, on the upper half of the sizes."""
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
    verdict = Verdict.holds if exponent < LINEAR else Verdict.does_not_hold
    beside = (
        f"memory {row['peak_mib_exponent']:.2f}; softmax {softmax:.2f}; N from {row['from_n']:,} to {row['to_n']:,}, "
        f"{evidence.costs['device'].iloc[0]}"
    )
    return [Finding(attention, exponent, exponent, exponent, 1, verdict, beside)]


def race(evidence: Evidence) -> list[Finding]:
    """How many times the dual's time a randomised SVD takes, one finding for each task and kernel."""
    if evidence.races.empty:
        return []
    found = []
    table = ratios(evidence.races)
    for _, row in table[table["solver"] == RANDOMISED].iterrows():
        low, high = float(row["ratio_low"]), float(row["ratio_high"])
        verdict = Verdict.holds if low > 1 else Verdict.does_not_hold if high < 1 else Verdict.cannot_be_told
        same = table[(table["task"] == row["task"]) & (table["kernel"] == row["kernel"])]
        others = same[~same["solver"].isin([RANDOMISED, DUAL])]
        beside = ", ".join(f"{one['solver']} {one['ratio']:.3g}" for _, one in others.iterrows())
        label = f"{row['task']}, {row['kernel']}, N = {row['n']:,}"
        found.append(Finding(label, float(row["ratio"]), low, high, int(row["rounds"]), verdict, beside))
    return found
