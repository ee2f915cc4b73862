"""RPC-Attention's paper on segmentation (E.5)."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pandas as pd

from kattn_cli.papers import printed
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.finding import Claim, Finding
from kattn_cli.papers.paired import compared, judge_pairs
from kattn_cli.papers.rpc.claims.models import described

BASE = "symmetric"
CANVASES = "kattn eval segmentation/canvases"


def _better(row: str, corrupted: bool, metric: str, evidence: Evidence) -> list[Finding]:
    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        test = rows[rows["split"] == "test"].fillna({"corruption": ""})
        return test[(test["corruption"] != "") == corrupted]

    def prints(folder: str) -> float:
        return printed.difference("rpc", "table6", row, metric, (described(folder)[0], BASE))

    on = ["corruption", "severity", "images"]
    pairs = compared(evidence, "segmentation", "rpc*", BASE, choose=chosen, column=metric, on=on)
    return judge_pairs(pairs, above=0, printed=prints)


def _claim(what: str, row: str, corrupted: bool, metric: str, named: str) -> Claim:
    over = ", mean over 15 types × 5 severities" if corrupted else ""
    judge: Callable[[Evidence], list[Finding]] = partial(_better, row, corrupted, metric)
    return Claim(
        "E.5, Table 6",
        f"Segmenter with RPC-Attention has a higher {named} than with symmetric attention {what}.",
        f"difference of {named}{over}, paired by seed; holds above 0 points",
        f"{CANVASES} --corruptions" if corrupted else CANVASES,
        judge,
    )


CLAIMS = [
    _claim(what, row, corrupted, metric, named)
    for what, row, corrupted in (
        ("on clean images", "ADE20K", False),
        ("on corrupted images", "corrupted ADE20K", True),
    )
    for metric, named in (("mean_iou", "mean IoU"), ("mean_accuracy", "mean accuracy"))
]
