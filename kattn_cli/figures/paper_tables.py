"""Our numbers in the shape of the RPC-Attention paper's Tables 1, 2, 4 and 5, with the paper's beside them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
import yaml

import kattn_cli
from kattn_cli.analysis.corruption_errors import errors_by_type, measured_together
from kattn_cli.figures.frames import attack_frame, frame
from kattn_cli.figures.paper_rows import UNTOLD, baselines_first, beside_the_paper
from kattn_cli.figures.paper_sections import Section, as_markdown, mean_and_half
from kattn_cli.results import RECIPE, Run

PAPER = Path(kattn_cli.__file__).parent / "papers" / "rpc.csv"
BASELINE = "symmetric"
KEY = ["table", "row", "metric", "setting"]
LOWER_IS_BETTER = ("mce",)
METRICS = {"top1": "top-1", "top5": "top-5", "mce": "mCE", "aupr": "AUPR"}
TITLES = {
    "table1": "Table 1: clean, corrupted, out of distribution",
    "table2": "Table 2: under attack",
    "table4": "Table 4: by type of corruption, mean over five severities",
    "table5": "Table 5: under the Square attack",
}


def paper_tables(runs: Sequence[Run]) -> pd.DataFrame:
    """One row for each number of the paper's tables that the runs have, and each label, in %.

    Columns: ``table, row, metric, setting, label`` and those of :func:`~kattn_cli.figures.paper_rows.beside_the_paper`;
    differences are from the label of symmetric attention.
    """
    values = _values(runs)
    models = {label: _model(run) for label, run in _by_label(runs, values).items()}
    published = pd.read_csv(PAPER).set_index(["table", "row", "metric", "model"])["value"].to_dict()
    return beside_the_paper(values, KEY, models, published, lambda model: (BASELINE,), LOWER_IS_BETTER)


def markdown(tables: pd.DataFrame) -> str:
    """The tables of :func:`sections` in Markdown."""
    return as_markdown(sections(tables))


def sections(tables: pd.DataFrame) -> list[Section]:
    """The tables with ``ours (the paper's)`` in each cell, and what of the paper's differences held, in words."""
    found = []
    labels = baselines_first(tables) if len(tables) else []
    for name, title in TITLES.items():
        table = tables[tables["table"] == name] if len(tables) else tables
        if table.empty:
            continue
        rows = []
        for (row, metric, setting), part in table.groupby(["row", "metric", "setting"], sort=False):
            cells = {str(one["label"]): _cell(one) for _, one in part.iterrows()}
            rows.append([f"{setting or row} {METRICS[str(metric)]}", *(cells.get(label, "") for label in labels)])
        found.append(Section(title, ["", *labels], rows, sentences=_sentences(table)))
    return found


def _sentences(table: pd.DataFrame) -> list[str]:
    """For each of the paper's models but the baseline, how many of its differences were met."""
    told = []
    for label, part in table.dropna(subset="paper_difference").groupby("label", sort=False):
        sign = part["metric"].isin(LOWER_IS_BETTER).map({True: -1, False: 1})
        claimed = int((sign * part["paper_difference"] > 0).sum())
        counts = part["verdict"].value_counts() if "verdict" in part else {}
        ours = ", ".join(f"{counts.get(word, 0)} {word}" for word in ("better", "worse", UNTOLD))
        told.append(f"{label} against symmetric: in the paper better in {claimed} of {len(part)} numbers; here {ours}.")
    return told


def _values(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a number, label and seed: the key of the paper's table, ``setting`` (what was measured), ``value``."""
    rows = [*_evaluated(frame(runs, "eval.csv")), *_corrupted(runs), *_attacked(attack_frame(runs))]
    return pd.DataFrame(rows, columns=[*KEY, "label", "run_seed", "folder", "value"])


Rows = Iterable[dict[str, object]]


def _evaluated(table: pd.DataFrame) -> Rows:
    if table.empty:
        return
    clean = table[(table["severity"] == 0) & (table["split"] == "test")].sort_values("images", kind="stable")
    for _, one in clean.drop_duplicates(["label", "run_seed"], keep="last").iterrows():
        for metric in ("top1", "top5"):
            yield _number(one, "table1", "IN-1K", metric, "clean test set", one[metric])
    if "aupr" in table:
        for _, one in table.dropna(subset="aupr").iterrows():
            yield _number(one, "table1", "IN-O", "aupr", f"OOD {one['split']}", one["aupr"])


def _corrupted(runs: Sequence[Run]) -> Rows:
    evaluated, compared = frame(runs, "eval.csv"), frame(runs, "corruption_errors.csv")
    if evaluated.empty:
        return
    for _, part in evaluated.groupby("folder", sort=False):
        rows = measured_together(part)
        errors = errors_by_type(rows) if len(rows) else pd.Series(dtype=float)
        if errors.empty:
            continue
        one = rows.iloc[-1]
        yield _number(one, "table1", "IN-C", "top1", "corrupted", 100 - errors.mean())
        for name, error in errors.items():
            yield _number(one, "table4", str(name), "top1", "", 100 - error)
    if not compared.empty:
        known = compared.dropna(subset="corruption_error")
        for _, part in known.groupby("folder", sort=False):
            one = part.iloc[-1]
            setting = f"corrupted, against {one['reference']}"
            yield _number(one, "table1", "IN-C", "mce", setting, part["corruption_error"].mean())
        for _, one in known.iterrows():
            yield _number(one, "table4", one["corruption"], "mce", "", one["corruption_error"])


def _attacked(table: pd.DataFrame) -> Rows:
    """Of several ε of an attack the greatest, as the paper reports it."""
    if table.empty:
        return
    same = ["folder", "attack", "norm", "epsilon_units", "targeted"]
    greatest = table.sort_values("epsilon", kind="stable").drop_duplicates(same, keep="last")
    for _, one in greatest.sort_index().iterrows():
        for metric in ("top1", "top5"):
            number = "table5" if one["attack"] == "square" else "table2"
            yield _number(one, number, str(one["attack"]), metric, str(one["name"]), one[metric])


def _number(one: pd.Series, table: str, row: str, metric: str, setting: str, value: float) -> dict[str, object]:
    key = {"table": table, "row": row, "metric": metric, "setting": setting}
    return {**key, "label": one["label"], "run_seed": one["run_seed"], "folder": one["folder"], "value": value}


def _by_label(runs: Sequence[Run], values: pd.DataFrame) -> dict[str, Run]:
    of_folder = dict(zip(values["folder"], values["label"], strict=True))
    return {of_folder[str(run.folder)]: run for run in runs if str(run.folder) in of_folder}


def _model(run: Run) -> str:
    """The paper's model that a run is of: ``symmetric``, ``rpc 4`` (in layer 1), ``rpc 2 all``; else nothing."""
    attention = yaml.safe_load((run.folder / RECIPE).read_text(encoding="utf-8"))["attention"]
    layers = {str(key): value.get("name") for key, value in (attention.get("layers") or {}).items()}
    if attention["name"] == "symmetric" and not layers:
        return "symmetric"
    if attention["name"] == "rpc":
        where = {(): " all", (("1:", "symmetric"),): ""}.get(tuple(layers.items()))
        return "" if where is None else f"rpc {attention['iterations']}{where}"
    return ""


def _cell(one: pd.Series) -> str:
    ours = mean_and_half(one["mean"], one["high"])
    return ours if math.isnan(one["paper"]) else f"{ours} ({one['paper']:.2f})"
