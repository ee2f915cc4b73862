"""A group's results, and the comparisons of its mechanisms: which are compared, by what, and what came out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pandas as pd

from kattn_cli.report.groups import Group
from kattn_cli.report.page import Block, Part
from kattn_cli.statistics.crossed import crossed
from kattn_cli.statistics.effect import Effect
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.statistics.power import FEW_SEEDS
from kattn_cli.statistics.two_way import compare
from kattn_cli.statistics.verdict import Decision, Question, Verdict, decide
from kattn_cli.tables.frames import attack_frame
from kattn_cli.tables.margins import in_percent, margin_of
from kattn_cli.tables.measures import BEST, PERPLEXITY, measure_of
from kattn_cli.tables.text import Table, counted, interval, listed, mean_and_half, p_value, signed

BASELINE, KERNEL_BASELINE = "softmax", "symmetric"
ALL_PAIRS = 5
"""So many labels without a baseline among them are each compared with each."""
LEAST = 10.0
"""Of several ε of an attack, the greatest counts that leaves this accuracy (in %) on average: nothing falls below 0."""
MAIN_ATTACKS = ("pgd", "autoattack", "square", "fgsm", "spsa", "sld", "cw")
"""Of these, the first that was measured is the one that mechanisms are compared by."""


@dataclass(frozen=True)
class Comparison:
    """``label`` less ``against``, in one quantity, with what was decided of it."""

    label: str
    against: str
    quantity: str
    decision: Decision

    @property
    def effect(self) -> Effect:
        return self.decision.question.effect


def comparisons(group: Group) -> list[Comparison]:
    """Return all comparisons of a group, the family that the correction is for; none where nothing is shared."""
    asked: list[tuple[str, str, str]] = []
    family: list[Question] = []
    for quantity in main_quantities(group):
        effects = effects_of(group, quantity, pairs(group))
        asked += [(*pair, quantity) for pair in effects]
        family += [question_of(quantity, effect) for effect in effects.values()]
    return [Comparison(*one, decision) for one, decision in zip(asked, decide(family), strict=True)]


def effects_of(group: Group, quantity: str, wanted: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Effect]:
    """Return the differences of those pairs that were measured with one seed.

    Image by image where both say which were right, else with the variance pooled over all of the pairs.
    """
    values = group.measured[quantity]
    if measure_of(quantity) is PERPLEXITY:
        values = {label: {seed: in_percent(one) for seed, one in row.items()} for label, row in values.items()}
    known = [pair for pair in wanted if set(values.get(pair[0], ())) & set(values.get(pair[1], ()))]
    pooled = dict(zip(known, compare(values, known), strict=True))
    right = group.right.get(quantity, {})
    return {pair: crossed(right[pair[0]], right[pair[1]]) if {*pair} <= set(right) else pooled[pair] for pair in known}


def question_of(quantity: str, effect: Effect) -> Question:
    """Return what is asked of a difference: its measure's margin, and which way is better."""
    margin = margin_of(quantity)
    return Question(effect, margin.value, measure_of(quantity).lower_is_better, unit=margin.unit)


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
        decision, (low, high) = one.decision, one.decision.interval
        margin = margin_of(one.quantity)
        rows.append(
            {
                "label": one.label,
                "against": one.against,
                "quantity": one.quantity,
                "difference": one.effect.estimate,
                "low": low,
                "high": high,
                "unit": margin.unit,
                "margin": margin.value,
                "seeds": one.effect.seeds,
                "images": one.effect.images,
                "model": one.effect.model,
                "p_apart_holm": decision.p_apart,
                "p_within_holm": decision.p_within,
                "verdict": decision.verdict.value,
                "smallest_seen": decision.smallest_seen,
                "seeds_needed": decision.seeds_needed,
                "reason": decision.sentence,
            }
        )
    return pd.DataFrame(rows)


def results_part(group: Group) -> Part:
    """Return the table of all quantities, or a sentence where there are none."""
    if not group.measured:
        return Part("Results", ["Nothing but the training was measured; kattn eval and kattn attack do that."])
    return Part("Results", [_results(group)])


def _results(group: Group) -> Table:
    quantities, labels = list(group.measured), group.labels
    rows, bold, tidy = [], set(), []
    best = {quantity: clear_best(group, quantity) for quantity in quantities}
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
        f"{_bold(bool(bold))}"
    )
    name = f"{group.slug}-results"
    return Table(name, caption, ["", *quantities, "seeds"], rows, bold=bold, data=pd.DataFrame(tidy))


def clear_best(group: Group, quantity: str) -> str:
    """Return the label that is better than every other one that has the quantity, after Holm; nothing without one."""
    values = group.measured[quantity]
    means = {label: sum(by_seed.values()) / len(by_seed) for label, by_seed in values.items()}
    if len(means) < 2:
        return ""
    best = (min if measure_of(quantity).lower_is_better else max)(means, key=lambda label: means[label])
    others = [(best, label) for label in values if label != best]
    effects = effects_of(group, quantity, others)
    judged = decide([question_of(quantity, effect) for effect in effects.values()])
    better = [one.verdict is Verdict.better for one in judged]
    return best if len(better) == len(others) and all(better) else ""


def _measured(quantities: Sequence[str]) -> str:
    kinds = dict.fromkeys(measure_of(one) for one in quantities)
    names = [f"{one.in_words}{' (the lower the better)' * one.lower_is_better}" for one in kinds]
    where = "in new episodes" if {"return", "normalised score"} & {*names} else "on the test set"
    return f"{listed(names)} {where}"


def _bold(any_bold: bool) -> str:
    rule = "better than every other in its column, after Holm"
    return f"Bold: {rule}." if any_bold else f"None is {rule}, so none is bold."


def compared_part(group: Group, found: Sequence[Comparison]) -> Part:
    """Return the table of comparisons with what to know of it, or why there is none."""
    return Part("Comparisons", list(_compared(group, found)))


def _compared(group: Group, found: Sequence[Comparison]) -> Iterator[Block]:
    if not found:
        yield _why_none(group)
        return
    if why := too_few(found):
        yield why
    rows = []
    for one in found:
        decimals, margin = decimals_of(one.quantity), margin_of(one.quantity)
        low, high = one.decision.interval
        numbers = [signed(one.effect.estimate, decimals), interval(low, high, decimals)]
        numbers += [str(replace(margin, of="")), p_value(one.decision.p_value), str(one.effect.seeds)]
        rows.append([one.label, one.against, one.quantity, *numbers, one.decision.verdict.value, _why(one)])
    caption = (
        f"{group.name}, comparisons: differences from the baseline over the seeds of both, in points (of perplexity in "
        "%), with 95 % intervals, which nothing corrects. Their variance is pooled over the mechanisms of the table, "
        "or of seeds and images where both say which images were right. The verdict is at 0.05, after Holm for the "
        f"{counted(len(found), 'comparison')} of this table; the margins are ours."
    )
    columns = ["", "against", "quantity", "difference", "95 % interval", "margin", "p (Holm)", "seeds"]
    words = ("verdict", "why")
    yield Table(f"{group.slug}-tests", caption, [*columns, *words], rows, 3, words, data=as_frame(found))


def decimals_of(quantity: str) -> int:
    """Return with how many decimals a difference is written: one more than the measure, and of % one."""
    measure = measure_of(quantity)
    return 1 if measure is PERPLEXITY else measure.decimals + 1


def _why(one: Comparison) -> str:
    """Return what an undecided comparison could have seen and would take; of a decided one nothing."""
    if one.decision.verdict is not Verdict.undecided:
        return ""
    return one.decision.sentence.partition("; ")[2].rstrip(".")


def too_few(found: Sequence[Comparison]) -> str:
    """Return why none of these comparisons can tell anything, as a sentence; nothing where one can."""
    most = max(one.effect.seeds for one in found)
    if most >= FEW_SEEDS:
        return ""
    are = "is" if most == 1 else "are"
    return f"{counted(most, 'seed')} {are} too few to tell two mechanisms apart; it takes three."


def _why_none(group: Group) -> str:
    if len(group.labels) == 1:
        return "There is one mechanism, so nothing is compared."
    if not group.measured:
        return "There is nothing to compare them by."
    return "No softmax attention is among them, or no seed is shared with it, so nothing is compared."
