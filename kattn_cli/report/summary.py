"""The top of the page: of what it is, and what came out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from kattn_cli.report.groups import Group
from kattn_cli.report.page import Part
from kattn_cli.report.provenance import commits, machines, moment, records
from kattn_cli.report.results import Comparison, decimals_of, too_few
from kattn_cli.runs.run import Run
from kattn_cli.statistics.verdict import Verdict
from kattn_cli.tables.text import bullets, code, counted, escaped, listed, p_value, signed

MOST = 4
"""Names in a list of this part."""


def introduction(runs: Sequence[Run], groups: Sequence[Group], command: str, left_out: Sequence[str]) -> Iterator[str]:
    """Yield a paragraph of facts, and one of what was left out."""
    measured = [one for run in runs for one in records(run)]
    if runs:
        mechanisms = {one for group in groups for one in group.mechanisms.values()}
        seeds = sorted({run.seed for run in runs})
        data = list(dict.fromkeys(group.data for group in groups if group.data))
        facts = [f"{counted(len(runs), 'run')} of {counted(len(mechanisms), 'mechanism')}", f"seeds {_seeds(seeds)}"]
        facts += [f"on {listed(map(escaped, data))}"] if data else []
        ends = sorted(str(one["end"]) for one in measured if one.get("end"))
        newest = f" The newest measurement ended on {escaped(moment(ends[-1]))} UTC." if ends else ""
        known = commits(measured)
        code_of = f"{counted(len(known), 'commit')} ({escaped(listed(known, MOST))})" if known else "no known commit"
        places = escaped(listed(machines(measured), MOST)) or "no known machine"
        yield f"{', '.join(facts)}. Code: {code_of}. Machines: {places}.{newest} Made by {code(command)}."
    else:
        yield f"Tables of costs. Made by {code(command)}."
    if left_out:
        yield f"**Left out:** {escaped(listed(left_out, 8))}."


def came_out(
    groups: Sequence[Group],
    found: Mapping[str, Sequence[Comparison]],
    tallies: Mapping[str, str],
) -> Part:
    """Return a line for each group, and the tally of each paper's claims.

    Args:
        found: the comparisons by the group's slug.
        tallies: of the claims of each paper, by its name.
    """
    lines = [f"**{escaped(group.name)}:** {_group(found[group.slug])}" for group in groups]
    lines += [f"**Claims of the {escaped(paper)} paper:** {tally}" for paper, tally in tallies.items()]
    return Part("What came out", [bullets(lines)] if lines else [])


THAN = {
    Verdict.better: "better than",
    Verdict.worse: "worse than",
    Verdict.equivalent: "equivalent within the margin to",
}


def _group(found: Sequence[Comparison]) -> str:
    if not found:
        return "nothing to compare."
    if why := too_few(found):
        return why
    told = [one for one in found if one.decision.verdict in THAN]
    if not told:
        return f"all of {counted(len(found), 'comparison')} undecided."
    by_word: dict[tuple[Verdict, str, str], list[Comparison]] = {}
    for one in sorted(told, key=lambda one: list(THAN).index(one.decision.verdict)):
        by_word.setdefault((one.decision.verdict, one.against, one.quantity), []).append(one)
    parts = [
        f"{listed(map(_one, these))} {THAN[word]} {escaped(against)} in {escaped(quantity)}"
        for (word, against, quantity), these in by_word.items()
    ]
    rest = f" ({len(found) - len(told)} undecided)" if len(told) < len(found) else ""
    return f"{'; '.join(parts)}{rest}."


def _one(one: Comparison) -> str:
    difference = signed(one.effect.estimate, decimals_of(one.quantity))
    return f"{escaped(one.label)} ({difference}, p {_p(one.decision.p_value)})"


def _p(p: float) -> str:
    text = p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) > 2 and list(seeds) == list(range(seeds[0], seeds[-1] + 1)):
        return f"{seeds[0]} to {seeds[-1]}"
    return listed(map(str, seeds), 8)
