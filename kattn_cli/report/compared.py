"""Which mechanisms of a group are compared with which, by what, and what came out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd

from kattn_cli.report.groups import Group
from kattn_cli.tables.comparison import Judged, TestName, judge, paired
from kattn_cli.tables.frames import attack_frame
from kattn_cli.tables.measures import measure_of

BASELINE, KERNEL_BASELINE = "softmax", "symmetric"
ALL_PAIRS = 5
"""So many labels without a baseline among them are each compared with each."""
LEAST = 10.0
"""Of several ε of an attack, the greatest counts that leaves this accuracy (in %) on average: nothing falls below 0."""
ATTACKS = ("pgd", "autoattack", "square", "fgsm", "spsa", "sld", "cw")
"""Of these, the first that was measured is the one that mechanisms are compared by."""


@dataclass(frozen=True)
class Comparison:
    """``label`` less ``against``, in one quantity."""

    label: str
    against: str
    quantity: str
    judged: Judged


def comparisons(group: Group, test: TestName) -> list[Comparison]:
    """All of a group's, which together are the family that Holm's correction is for; none where nothing is shared."""
    asked, family, quantities = [], [], main_quantities(group)
    for label, against in pairs(group):
        for quantity in quantities:
            values = group.measured[quantity]
            if label in values and against in values:
                tests = paired(values[label], values[against])
                if tests.seeds:
                    asked.append((label, against, quantity))
                    family.append(tests)
    words = judge(family, [measure_of(quantity).lower_is_better for *_, quantity in asked], test)
    return [Comparison(*one, judged) for one, judged in zip(asked, words, strict=True)]


def pairs(group: Group) -> list[tuple[str, str]]:
    """Each label and its baseline: of robust kernel PCA symmetric attention, of all others softmax.

    Where several labels are the baseline, that with the same overrides. Without one, a few labels are each compared
    with each.
    """
    found = []
    for label in group.labels:
        robust = group.mechanisms[label].startswith("rpc")
        base = (_baseline(group, label, KERNEL_BASELINE) if robust else "") or _baseline(group, label, BASELINE)
        if base and base != label:
            found.append((label, base))
    labels = group.labels
    if found or len(labels) > ALL_PAIRS:
        return found
    return [(one, other) for place, other in enumerate(labels) for one in labels[place + 1 :]]


def _baseline(group: Group, label: str, name: str) -> str:
    """The label of that name, or else of that mechanism; nothing for one that is such a baseline itself."""
    named = [one for one in group.labels if _own(one) == name]
    known = named or [one for one in group.labels if group.mechanisms[one] == name]
    if label in known or not known:
        return ""
    changes = label.partition(" ")[2]
    return next((one for one in known if one.partition(" ")[2] == changes), min(known, key=len))


def _own(label: str) -> str:
    return label.partition(" ")[0].rpartition("/")[2]


def main_quantities(group: Group) -> list[str]:
    """What mechanisms are compared by: clean, under the main attack, corruption, perplexity clean and most swapped.

    Of segmenters mean IoU, clean and corrupted; of what acts its score, or else its first return.
    """
    quantities = list(group.measured)
    perplexity = [one for one in quantities if one.startswith("perplexity") and " of " not in one]
    clean = [one for one in quantities if one == "clean"] or [one for one in quantities if one.startswith("clean")][-1:]
    corrupted = [one for one in quantities if one.startswith("mean error")]
    others = [one for one in quantities if one.startswith("mean IoU")]
    acted = [one for one in quantities if one == "normalised score" or one.startswith("return")][:1]
    chosen = {*clean, *_attacked(group, quantities), *corrupted, *perplexity[:1], *perplexity[-1:], *others, *acted}
    return [one for one in quantities if one in chosen]


def _attacked(group: Group, quantities: Sequence[str]) -> list[str]:
    table = attack_frame(group.runs)
    if table.empty:
        return []
    attack = next((one for one in ATTACKS if one in set(table["attack"])), "")
    rows = table[table["attack"] == attack]
    rows = rows[rows["epsilon_units"] == rows["epsilon_units"].max()]  # "pixels …" comes after "normalised"
    means = rows.groupby(["epsilon", "name"])["top1"].mean().reset_index()
    left = means[means["top1"] >= LEAST]
    if means.empty:
        return []
    name = str((left if len(left) else means[:1])["name"].iloc[-1])
    return [one for one in quantities if one == name or one.startswith(f"{name} (")]


def as_frame(found: Sequence[Comparison]) -> pd.DataFrame:
    """One row a comparison, nothing rounded."""
    rows = []
    for one in found:
        tests = one.judged.paired
        mean, half = tests.interval
        rows.append(
            {
                "label": one.label,
                "against": one.against,
                "quantity": one.quantity,
                "difference": mean,
                "low": mean - half,
                "high": mean + half,
                "seeds": tests.seeds,
                "p_t": tests.t,
                "p_t_holm": one.judged.t,
                "p_wilcoxon": tests.wilcoxon,
                "p_wilcoxon_holm": one.judged.wilcoxon,
                "least_p_wilcoxon": tests.least_wilcoxon,
                "verdict": one.judged.verdict,
            }
        )
    return pd.DataFrame(rows)
