"""A paper's tables with ours in them, as text: for Markdown, for the console, for the report."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.papers.beside import HIGHER_IS_BETTER, PaperTable, baselines_first
from kattn_cli.papers.paper import Paper
from kattn_cli.statistics.verdict import Verdict
from kattn_cli.tables.frames import shared_folder
from kattn_cli.tables.text import code, escaped, markdown_table, mean_and_half

METRICS = {
    "top1": ("top-1", " (%)", 1),
    "top5": ("top-5", "", 1),
    "mce": ("mCE", "", 1),
    "aupr": ("AUPR", "", 1),
    "mean_accuracy": ("mean accuracy", "", 1),
    "mean_iou": ("mean IoU", "", 1),
    "validation_top1": ("validation top-1", " (%)", 1),
    "train_top1": ("training top-1", " (%)", 1),
    "seconds_per_epoch": ("s an epoch", "", 2),
    "seconds_per_1k_steps": ("s for 1,000 steps", "", 1),
    "memory_gb": ("peak memory (GB)", "", 2),
    "perplexity": ("perplexity", "", 2),
    "swapped_perplexity": ("swapped", "", 2),
    "loss": ("loss", " (nats)", 3),
    "reward": ("normalised score", "", 1),
}
"""What a metric is called, its unit, and how many decimals its numbers have."""


@dataclass(frozen=True)
class Section:
    """One table: its cells, of which the first ``names`` columns are no numbers, and what is to be said of it.

    ``notes``: what to know before reading it; ``sentences``: what it says.
    """

    title: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    names: int = 1
    notes: Sequence[str] = field(default_factory=list)
    sentences: Sequence[str] = field(default_factory=list)


def sections(numbers: pd.DataFrame, paper: Paper) -> list[Section]:
    """Return the tables of :func:`~kattn_cli.papers.beside.beside` as text, each in its own layout."""
    found: list[Section] = []
    for table in paper.tables:
        mine = numbers[numbers["table"].isin(table.tables)]
        if len(mine):
            found += LAYOUTS[table.layout](table, mine, f"{paper.method} paper, {table.title}")
    return found


def as_markdown(sections: Sequence[Section]) -> str:
    """Return each with its title, table and sentences in Markdown."""
    parts: list[str] = []
    for one in sections:
        parts += [f"### {escaped(one.title)}", ""]
        parts += [*(f"- {note}" for note in one.notes), ""] if one.notes else []
        columns, *rows = [list(map(escaped, cells)) for cells in (one.columns, *one.rows)]
        table = markdown_table(columns, rows, range(one.names))
        parts += [table, "", *(f"- {sentence}" for sentence in one.sentences), ""]
    return "\n".join(parts)


def print_sections(sections: Sequence[Section]) -> None:
    """Print each with its title, table and sentences."""
    for section in sections:
        console.print(f"\n{section.title}\n")
        print_wide(section.columns, section.rows)
        for line in (*section.notes, *section.sentences):
            console.print(f"- {line}")
    console.print()


def _by_mechanism(table: PaperTable, numbers: pd.DataFrame, title: str) -> Iterator[Section]:
    """Yield a table for each setting, with a line for each mechanism: ours, the paper's, and a difference."""
    key = ["row", "metric", "measured"]
    for setting, mine in numbers.groupby("setting", sort=False):
        places: list[tuple[str, str, str]] = list(mine[key].drop_duplicates().itertuples(index=False, name=None))
        labels = baselines_first(mine)
        folder = shared_folder(labels)
        base = next(iter(table.baselines(str(mine["model"].iloc[0]))))
        columns = ["mechanism"]
        for row, metric, measured in places:
            name = METRICS[metric][0]
            columns += [f"{measured} {name}" if metric in ("top1", "top5") else name, f"paper, {row}"]
        columns[3:3] = [f"less {base.partition(' ')[0]}", "paper"]
        rows = []
        for label in labels:
            of_label = mine[mine["label"] == label].set_index(key)
            cells = [label.removeprefix(folder)]
            for place in places:
                one = of_label.loc[place] if place in of_label.index else None
                cells += ["", ""] if one is None else [_ours(one), _printed(one["paper"])]
            cells[3:3] = _differences(of_label.loc[places[0]]) if places[0] in of_label.index else ["", ""]
            rows.append([*cells, str(of_label["seeds"].max())])
        yield Section(f"{title}; {setting}", [*columns, "seeds"], rows, notes=_notes(table, mine))


def _by_number(table: PaperTable, numbers: pd.DataFrame, title: str) -> Iterator[Section]:
    """Yield a table for each setting, with a line for each number: ``ours (the paper's)``."""
    for setting, mine in numbers.groupby("setting", sort=False):
        labels, rows = baselines_first(mine), []
        for (row, metric, measured), cells in mine.groupby(["row", "metric", "measured"], sort=False):
            of_label = {
                str(one["label"]): _ours(one) + ("" if math.isnan(one["paper"]) else f" ({one['paper']:.2f})")
                for _, one in cells.iterrows()
            }
            name = METRICS[str(metric)][0]
            rows.append([f"{measured or row} {name}", *(of_label.get(label, "") for label in labels)])
        notes, sentences = _notes(table, mine), list(_how_many_held(table, mine))
        yield Section(f"{title}; {setting}", ["", *labels], rows, notes=notes, sentences=sentences)


def _by_setting(table: PaperTable, numbers: pd.DataFrame, title: str) -> Iterator[Section]:
    """Yield one table with a line for each setting and mechanism: ours, then the paper's own number."""
    rows: list[dict[str, str]] = []
    labels = baselines_first(numbers)
    for (_, setting), group in numbers.groupby(["row", "setting"], sort=False):
        name, folder = str(setting), shared_folder(group["label"])
        for label in (one for one in labels if one in set(group["label"])):
            names = {"what was run": name, "mechanism": label.removeprefix(folder)}
            rows.append({**names, **_cells(table, group[group["label"] == label])})
            name = ""
    kept = [heading for heading in _headings(table, numbers) if any(row.get(heading) for row in rows)]
    models = dict(zip(numbers["label"], numbers["model"], strict=True))
    bases = dict.fromkeys(models[base] for base in numbers["baseline"] if base)
    shown = {"difference": f"less {' or '.join(bases)}"}
    columns = ["paper" if heading.startswith("paper ") else shown.get(heading, heading) for heading in kept]
    cells = [[row.get(heading, "") for heading in kept] for row in rows]
    yield Section(title, columns, cells, 2, _notes(table, numbers), list(_what_held(table, numbers)))


LAYOUTS: Mapping[str, Callable[[PaperTable, pd.DataFrame, str], Iterator[Section]]] = {
    "mechanisms": _by_mechanism,
    "numbers": _by_number,
    "settings": _by_setting,
}


def _notes(table: PaperTable, numbers: pd.DataFrame) -> list[str]:
    """Return what to know of the table, and in what each setting is not the paper's."""
    notes = [table.note] if table.note else []
    for setting, rows in numbers[numbers["differs"] != ""].groupby("setting", sort=False):
        pieces = dict.fromkeys(piece for one in rows["differs"] for piece in one.split("; "))
        notes.append(f"{code(str(setting))} is not the paper's setting: {escaped('; '.join(pieces))}.")
    return notes


def _differences(one: pd.Series) -> list[str]:
    """Return our difference and the paper's."""
    ours, theirs = "", _printed(one["paper_difference"])
    if isinstance(one["verdict"], str):
        ours = f"{_signed(_ours(one, 'difference', 'difference_high'))}{_told(one)}"
    return [ours, _signed(theirs) if theirs else ""]


def _told(one: pd.Series) -> str:
    """Return the verdict in brackets; nothing of a cost."""
    return f" ({one['verdict']})" if one["verdict"] else ""


def _how_many_held(table: PaperTable, numbers: pd.DataFrame) -> Iterator[str]:
    """Say of each of the paper's models but the baseline how many of its differences were met."""
    for label, rows in numbers.dropna(subset="paper_difference").groupby("label", sort=False):
        sign = rows["metric"].isin(HIGHER_IS_BETTER).map({True: 1, False: -1})
        claimed = int((sign * rows["paper_difference"] > 0).sum())
        counts = rows["verdict"].value_counts()
        ours = ", ".join(f"{counts[word.value]} {word.value}" for word in Verdict if word.value in counts)
        base = table.baselines(str(rows["model"].iloc[0]))[0]
        pair = f"{escaped(str(label))} against {base}"
        yield f"{pair}: in the paper better in {claimed} of {len(rows)} numbers; here {ours}."


def _headings(table: PaperTable, numbers: pd.DataFrame) -> Iterator[str]:
    yield from ("what was run", "mechanism")
    for metric in table.metrics:
        shares = sorted(numbers.loc[numbers["metric"] == metric, "share"].unique())
        yield from (_heading(metric, share) for share in shares)
        yield f"paper {metric}"
        if metric == table.metrics[0]:
            yield from ("difference", "paper difference")
    yield "seeds"


def _heading(metric: str, share: float) -> str:
    name, unit, _ = METRICS[metric]
    return f"{100 * share:g} % {name}{unit}" if share else f"{name}{unit}"


def _cells(table: PaperTable, mine: pd.DataFrame) -> dict[str, str]:
    cells = {"seeds": str(mine["seeds"].max())}
    for _, one in mine.iterrows():
        metric, digits = one["metric"], METRICS[one["metric"]][2]
        cells[_heading(metric, one["share"])] = _ours(one, digits=digits)
        if theirs := _printed(one["paper"], digits):
            cells[f"paper {metric}"] = theirs
        if metric == table.metrics[0] and isinstance(one["verdict"], str):
            difference = _ours(one, "difference", "difference_high", digits)
            cells["difference"] = f"{_signed(difference)}{_told(one)}"
        if metric == table.metrics[0] and not math.isnan(one["paper_difference"]):
            cells["paper difference"] = _signed(_printed(one["paper_difference"], digits))
    return cells


def _what_held(table: PaperTable, numbers: pd.DataFrame) -> Iterator[str]:
    """Say of each number that the paper claims to be better than the baseline's its difference, and ours."""
    for _, one in numbers[numbers["model"].isin(list(table.claims))].iterrows():
        metric, base = one["metric"], one["baseline"]
        if metric in table.claims[one["model"]] and base not in ("", one["label"]):
            name, _, digits = METRICS[metric]
            what = f"perplexity with {100 * one['share']:g} % of the words swapped" if one["share"] else name
            unit = " points" if metric in HIGHER_IS_BETTER else ""
            theirs = _printed(one["paper_difference"], digits)
            paper = f"in the paper {_signed(theirs)}{unit}; " if theirs else ""
            folder = shared_folder([one["label"], base])
            ours, other = (code(label.removeprefix(folder)) for label in (one["label"], base))
            between = f"{what} of {ours} less that of {other}"
            yield f"{escaped(one['setting'])}: {between}: {paper}{_here(one, unit, digits)}."


def _here(one: pd.Series, unit: str, digits: int) -> str:
    """Return our difference with its interval, and what it tells."""
    if not isinstance(one["verdict"], str):
        return f"here nothing was measured of both with one seed, so {Verdict.undecided.value}"
    mean, low, high = (_signed(f"{one[key]:.{digits}f}") for key in ("difference", "difference_low", "difference_high"))
    interval = "one seed" if one["pairs"] == 1 else f"95 % interval {low} … {high}, {one['pairs']:.0f} seeds"
    if one["pairs"] > 1 and math.isnan(one["difference_low"]):
        interval = f"the same for {one['pairs']:.0f} seeds"
    return f"here {mean}{unit} ({interval}), {one['verdict']}"


def _ours(one: pd.Series, mean: str = "mean", high: str = "high", digits: int = 1) -> str:
    """Return ``71.9 ± 0.4``, by the upper end of the interval."""
    return mean_and_half(one[mean], one[high] - one[mean], digits)


def _printed(number: float, digits: int = 1) -> str:
    """Return a number of the paper with the decimals that it has there, no fewer than ``digits``; empty for nan."""
    if math.isnan(number):
        return ""
    short = f"{number:.{digits}f}"
    return short if abs(float(short) - number) < 1e-6 else f"{round(number, 6):g}"


def _signed(number: str) -> str:
    """Return ``+0.3`` or ``−0.3``."""
    return number.replace("-", "−") if number.startswith("-") else f"+{number}"
