"""A group's results, and the paired tests of its mechanisms: which are compared, by what, and what came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from kattn_cli.report.groups import Group
from kattn_cli.report.page import Block, Part
from kattn_cli.tables.comparison import BETTER, Judged, TestName, judge, paired, too_few
from kattn_cli.tables.frames import attack_frame
from kattn_cli.tables.measures import BEST, measure_of
from kattn_cli.tables.statistics import mean_interval
from kattn_cli.tables.text import Table, interval, listed, mean_and_half, p_value, signed

BASELINE, KERNEL_BASELINE = "softmax", "symmetric"
ALL_PAIRS = 5
"""So many labels without a baseline among them are each compared with each."""
LEAST = 10.0
"""Of several ε of an attack, the greatest counts that leaves this accuracy (in %) on average: nothing falls below 0."""
MAIN_ATTACKS = ("pgd", "autoattack", "square", "fgsm", "spsa", "sld", "cw")
"""Of these, the first that was measured is the one that mechanisms are compared by."""


@dataclass(frozen=True)
class Comparison:
    """``label`` less ``against``, in one quantity."""

    label: str
    against: str
    quantity: str
    judged: Judged


def comparisons(group: Group, test: TestName) -> list[Comparison]:
    """Return all comparisons of a group, the family that Holm's correction is for; none where nothing is shared."""
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
    """Return each label with its baseline: of robust kernel PCA symmetric attention, of all others softmax.

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
    """Return the label of that name, or else of that mechanism; nothing for one that is such a baseline itself."""
    named = [one for one in group.labels if _own(one) == name]
    known = named or [one for one in group.labels if group.mechanisms[one] == name]
    if label in known or not known:
        return ""
    changes = label.partition(" ")[2]
    return next((one for one in known if one.partition(" ")[2] == changes), min(known, key=len))


def _own(label: str) -> str:
    return label.partition(" ")[0].rpartition("/")[2]


def main_quantities(group: Group) -> list[str]:
    """Return what mechanisms are compared by: clean, main attack, corruption, perplexity clean and most swapped.

    Of segmenters mean IoU, clean and corrupted; of what acts its score, or else its first return.
    """
    quantities = list(group.measured)
    perplexity = [one for one in quantities if one.startswith("perplexity") and " of " not in one]
    clean = [one for one in quantities if one == "clean"] or [one for one in quantities if one.startswith("clean")][-1:]
    corrupted = [one for one in quantities if one.startswith("mean error")]
    others = [one for one in quantities if one.startswith("mean IoU")]
    acted = [one for one in quantities if one == "normalised score" or one.startswith("return")][:1]
    acted += [one for one in quantities if one.startswith(BEST)]
    chosen = {*clean, *_attacked(group, quantities), *corrupted, *perplexity[:1], *perplexity[-1:], *others, *acted}
    return [one for one in quantities if one in chosen]


def _attacked(group: Group, quantities: Sequence[str]) -> list[str]:
    table = attack_frame(group.runs)
    if table.empty:
        return []
    attack = next((one for one in MAIN_ATTACKS if one in set(table["attack"])), "")
    rows = table[table["attack"] == attack]
    rows = rows[rows["epsilon_units"] == rows["epsilon_units"].max()]  # "pixels …" comes after "normalised"
    means = rows.groupby(["epsilon", "name"])["top1"].mean().reset_index()
    left = means[means["top1"] >= LEAST]
    if means.empty:
        return []
    name = str((left if len(left) else means[:1])["name"].iloc[-1])
    return [one for one in quantities if one == name or one.startswith(f"{name} (")]


def as_frame(found: Sequence[Comparison]) -> pd.DataFrame:
    """Return a row for each comparison, nothing rounded."""
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


TESTS: Mapping[TestName, str] = {"t": "Student's paired t-test", "wilcoxon": "Wilcoxon's signed-rank test"}


def results_part(group: Group, test: TestName) -> Part:
    """Return the table of all quantities, or a sentence where there are none."""
    if not group.measured:
        return Part("Results", ["Nothing but the training was measured; kattn eval and kattn attack do that."])
    return Part("Results", [_results(group, test)])


def _results(group: Group, test: TestName) -> Table:
    quantities, labels = list(group.measured), group.labels
    rows, bold, tidy = [], set(), []
    best = {quantity: clear_best(group.measured[quantity], quantity, test) for quantity in quantities}
    for at, label in enumerate(labels):
        cells, most = [label], 0
        for column, quantity in enumerate(quantities, 1):
            values = list(group.measured[quantity].get(label, {}).values())
            most = max(most, len(values))
            cell = ""
            if values:
                mean, half = mean_interval(values)
                cell = mean_and_half(mean, half, measure_of(quantity).decimals)
                tidy.append({"label": label, "quantity": quantity, "mean": mean, "half": half, "seeds": len(values)})
            if best[quantity] == label:
                bold.add((at, column))
            cells.append(cell)
        rows.append([*cells, str(most)])
    caption = (
        f"{group.name}, results: {_measured(quantities)}, mean ± half of the 95 % Student-t interval over seeds. "
        f"{_bold(bool(bold), test)}"
    )
    name = f"{group.slug}-results"
    return Table(name, caption, ["", *quantities, "seeds"], rows, bold=bold, data=pd.DataFrame(tidy))


def clear_best(values: Mapping[str, Mapping[int, float]], quantity: str, test: TestName) -> str:
    """Return the label that is better than every other one that has the quantity, after Holm; nothing without one."""
    lower = measure_of(quantity).lower_is_better
    means = {label: sum(by_seed.values()) / len(by_seed) for label, by_seed in values.items()}
    if len(means) < 2:
        return ""
    best = (min if lower else max)(means, key=lambda label: means[label])
    family = [paired(values[best], other) for label, other in values.items() if label != best]
    judged = judge(family, [lower] * len(family), test)
    return best if all(one.verdict == BETTER for one in judged) else ""


def _measured(quantities: Sequence[str]) -> str:
    kinds = dict.fromkeys(measure_of(one) for one in quantities)
    names = [f"{one.in_words}{' (the lower the better)' * one.lower_is_better}" for one in kinds]
    where = "in new episodes" if {"return", "normalised score"} & {*names} else "on the test set"
    return f"{listed(names)} {where}"


def _bold(any_bold: bool, test: TestName) -> str:
    rule = f"better than every other in its column by {TESTS[test]}, paired by seed, after Holm"
    return f"Bold: {rule}." if any_bold else f"None is {rule}, so none is bold."


def paired_part(group: Group, found: Sequence[Comparison], test: TestName) -> Part:
    """Return the table of paired tests with what to know of it, or why there is none."""
    return Part("Paired tests", list(_tests(group, found, test)))


def _tests(group: Group, found: Sequence[Comparison], test: TestName) -> Iterator[Block]:
    if not found:
        yield _why_none(group)
        return
    if why := too_few([one.judged.paired for one in found], test):
        yield why
    data = as_frame(found)
    rows = []
    for one in found:
        decimals = measure_of(one.quantity).decimals + 1
        mean, half = one.judged.paired.interval
        numbers = [signed(mean, decimals), interval(mean - half, mean + half, decimals)]
        numbers += [p_value(one.judged.t), p_value(one.judged.wilcoxon), str(one.judged.paired.seeds)]
        rows.append([one.label, one.against, one.quantity, *numbers, one.judged.verdict])
    caption = (
        f"{group.name}, paired tests: differences from the baseline over the seeds of both, in points (of perplexity "
        "in its own unit), with their 95 % Student-t intervals, which are not corrected. The verdict is by "
        f"{TESTS[test]} at "
        f"0.05, after Holm for the {len(found)} comparison{'s' * (len(found) > 1)} of this table."
    )
    columns = ["", "against", "quantity", "difference", "95 % interval", "p (t, Holm)", "p (Wilcoxon, Holm)", "seeds"]
    yield Table(f"{group.slug}-tests", caption, [*columns, "verdict"], rows, 3, ["verdict"], data=data)
    if test == "t" and (few := _floors(data)):
        yield few


def _floors(data: pd.DataFrame) -> str:
    """Return what Wilcoxon's test cannot do with these seeds, in a sentence."""
    most = int(data["seeds"].max())
    least = 2.0 ** (1 - most)
    if most < 2 or least * len(data) <= 0.05:
        return ""
    times = "" if least > 0.05 else f", times {len(data)} comparisons {min(1.0, least * len(data)):.3g}"
    return (
        f"Wilcoxon on {most} seeds cannot go below p = {least:.4g}{times}: by that test the seeds are too few to tell."
    )


def _why_none(group: Group) -> str:
    if len(group.labels) == 1:
        return "There is one mechanism, so nothing is compared."
    if not group.measured:
        return "There is nothing to compare them by."
    return "No softmax attention is among them, or no seed is shared with it, so nothing is compared."
