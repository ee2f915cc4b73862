"""The page that says of each claim what was measured, with its interval and the verdict."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import pandas as pd

from kattn_cli.claims import PAPERS
from kattn_cli.claims.evidence import Evidence
from kattn_cli.claims.finding import Finding, Verdict

HEAD = "| claim | where | runs | measured, 95 % | verdict | beside it |"
RULE = "| --- | --- | --- | --- | --- | --- |"


def findings(evidence: Evidence) -> pd.DataFrame:
    """One row for each claim and label: what was claimed, measured, found, and by which command.

    Columns: ``paper, where, claim, criterion, label, mean, low, high, seeds, verdict, beside, command``.
    """
    rows = []
    for paper in PAPERS:
        for claim in paper.claims:
            nothing = Finding("", math.nan, math.nan, math.nan, 0, Verdict.not_measured)
            for found in claim.judge(evidence) or [nothing]:
                rows.append(
                    {
                        "paper": paper.title,
                        "where": claim.where,
                        "claim": claim.text,
                        "criterion": claim.criterion,
                        "label": found.label,
                        "mean": found.mean,
                        "low": found.low,
                        "high": found.high,
                        "seeds": found.seeds,
                        "verdict": found.verdict.value,
                        "beside": found.beside,
                        "command": claim.command,
                    }
                )
    return pd.DataFrame(rows)


def page(found: pd.DataFrame, pictures: Sequence[str], command: str) -> str:
    """Markdown: a section for each paper, with the figures that its claims rest on.

    Args:
        found: by :func:`findings`.
        pictures: paths of figures, as the page should name them.
        command: that wrote the page.
    """
    parts = [
        "# The audit of the kernel view",
        "",
        f"Written by `{command}` from the tables of the runs; `claims.csv` beside it has the same rows. A claim holds, "
        "or does not, where the whole 95 % interval (Student-t over seeds) is on one side of the bound that its "
        "criterion names; else, and with fewer than three seeds, it cannot be told at this size. Intervals are not "
        "corrected for their number. Costs are single measurements on one machine.",
        "",
        _tally(found),
    ]
    for paper in PAPERS:
        rows = found[found["paper"] == paper.title]
        parts += ["", f"## {paper.title}", "", *_table(rows[rows["verdict"] != Verdict.not_measured.value])]
        parts += ["", "How each is measured, and by which command:", ""]
        parts += [_how(claim) for _, claim in rows.drop_duplicates(["claim", "where"]).iterrows()]
        shown = [path for path in pictures if path.rpartition("/")[2].startswith(paper.figures)]
        parts += [line for path in shown for line in ("", f"![{_name(path)}]({path})")]
    return "\n".join(parts) + "\n"


def _tally(found: pd.DataFrame) -> str:
    counts = Counter(found["verdict"])
    return "; ".join(f"{verdict.value}: {counts[verdict.value]}" for verdict in Verdict) + "."


def _table(rows: pd.DataFrame) -> list[str]:
    """A claim is told once for all its labels."""
    if rows.empty:
        return ["None of its claims was measured on these runs."]
    told = rows.duplicated(["claim", "where"])
    return [HEAD, RULE, *(_row(row, again) for (_, row), again in zip(rows.iterrows(), told, strict=True))]


def _how(claim: pd.Series) -> str:
    criterion = claim["criterion"][:1].upper() + claim["criterion"][1:]
    missing = " (Not measured on these runs.)" if claim["verdict"] == Verdict.not_measured.value else ""
    return f"- {claim['claim']} {criterion}. `{claim['command']}`{missing}"


def _row(row: pd.Series, again: bool) -> str:
    claim = ["", ""] if again else [row["claim"], row["where"]]
    cells = [*claim, row["label"], _measured(row), f"**{row['verdict']}**", row["beside"]]
    return "| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |"


def _measured(row: pd.Series) -> str:
    if math.isnan(row["mean"]):
        return ""
    if math.isnan(row["low"]):
        return f"{row['mean']:.3g} (1 seed)"
    if row["low"] == row["high"]:
        return f"{row['mean']:.3g}"
    return f"{row['mean']:.3g} [{row['low']:.3g}, {row['high']:.3g}]"


def _name(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0].replace("_", " ")
