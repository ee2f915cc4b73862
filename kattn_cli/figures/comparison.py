"""The table that compares runs: clean accuracy, accuracy under attack, size and time."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kattn_cli.analysis.statistics import mean_interval
from kattn_cli.figures.frames import attack_frame, frame, shared_folder
from kattn_cli.results import Run


def comparison(runs: Sequence[Run]) -> pd.DataFrame:
    """One row a label: ``quantity → [values over seeds]``, as tidy rows ``label, quantity, mean, half, std, seeds``.

    Quantities: ``params``, ``clean``, one for each attack and ε (``pgd 4/255``), ``train s``.
    """
    parts = [
        _fact(runs, "params", "parameters"),
        _clean(runs),
        _attacked(runs),
        _fact(runs, "train s", "train_seconds"),
    ]
    known = [part.dropna(subset="value") for part in parts if len(part)]
    values = pd.concat([part for part in known if len(part)], ignore_index=True)
    rows = []
    for (label, quantity), part in values.groupby(["label", "quantity"], sort=False):
        mean, half = mean_interval(part["value"].tolist())
        spread = {"mean": mean, "half": half, "std": part["value"].std()}
        rows.append({"label": label, "quantity": quantity, **spread, "seeds": len(part)})
    return pd.DataFrame(rows)


def _fact(runs: Sequence[Run], quantity: str, key: str) -> pd.DataFrame:
    """One key of each run's manifest."""
    folder = shared_folder(run.label for run in runs)
    rows = [
        {"label": run.label.removeprefix(folder), "run_seed": run.seed, "value": run.manifest.get(key)} for run in runs
    ]
    return pd.DataFrame(rows).assign(quantity=quantity)


def _clean(runs: Sequence[Run]) -> pd.DataFrame:
    """From ``kattn eval`` where it was run, else from ``kattn attack``, on the images that it saw."""
    parts = []
    if not (attacked := attack_frame(runs)).empty:
        attacked = attacked.sort_values("images", kind="stable")
        parts.append(attacked.assign(value=attacked["clean_top1"]))
    if not (evaluated := frame(runs, "eval.csv")).empty:
        parts.append(evaluated[evaluated["split"] == "test"].assign(value=evaluated["top1"]))
    if not parts:
        return pd.DataFrame()
    return _latest(pd.concat(parts).assign(quantity="clean"))


def _attacked(runs: Sequence[Run]) -> pd.DataFrame:
    table = attack_frame(runs)
    if table.empty:
        return table
    names = [
        f"{attack} {epsilon_text(epsilon)}" for attack, epsilon in zip(table["attack"], table["epsilon"], strict=True)
    ]
    table = table.assign(quantity=names, value=table["top1"])
    return _latest(table.sort_values(["attack", "epsilon"], key=_attack_order, kind="stable"))


def _attack_order(column: pd.Series) -> pd.Series:
    return column.map({"pgd": 0, "fgsm": 1, "noise": 2}) if column.name == "attack" else column


def _latest(table: pd.DataFrame) -> pd.DataFrame:
    latest = table.drop_duplicates(["label", "run_seed", "quantity"], keep="last")
    return latest[["label", "run_seed", "quantity", "value"]]


def epsilon_text(epsilon: float) -> str:
    """``4/255``."""
    return f"{255 * epsilon:.3g}/255"
