"""A group's results, and the paired tests of its mechanisms."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from kattn_cli.report.compared import Comparison, as_frame
from kattn_cli.report.groups import Group
from kattn_cli.report.page import Block, Part
from kattn_cli.tables.comparison import BETTER, TestName, judge, paired, too_few
from kattn_cli.tables.measures import measure_of
from kattn_cli.tables.statistics import mean_interval
from kattn_cli.tables.text import Table, interval, listed, mean_and_half, p_value, signed

TESTS: Mapping[TestName, str] = {"t": "Student's paired t-test", "wilcoxon": "Wilcoxon's signed-rank test"}


def results_part(group: Group, test: TestName) -> Part:
    """The table of all quantities, or a sentence where there are none."""
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
    """The label that is better than every other one that has the quantity, after Holm; empty where there is none."""
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
    """The table of paired tests with what to know of it, or why there is none."""
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
    """What Wilcoxon's test cannot do with these seeds, in a sentence."""
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
