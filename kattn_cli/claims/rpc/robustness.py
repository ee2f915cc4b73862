"""RPC-Attention's paper on images (§4.1): clean, corrupted, out of distribution, attacked."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

import pandas as pd

from kattn_cli.analysis.attack_names import IDENTITY
from kattn_cli.claims import printed
from kattn_cli.claims.evidence import Evidence
from kattn_cli.claims.finding import Claim, Finding
from kattn_cli.claims.paired import compared, judge_pairs, more_accurate
from kattn_cli.figures.image_runs import image_run
from kattn_cli.results import Run

OURS, BASE = "rpc*", "symmetric"
ATTACKS = {
    "pgd": "PGD",
    "fgsm": "FGSM",
    "spsa": "SPSA",
    "sld": "SLD",
    "cw": "CW",
    "noise": "uniform noise",
    "autoattack": "AutoAttack",
}
"""Of Table 2; the Square attack is in Table 5."""
MEASURED = "mean over ε in pixel units (Table 2 has its greatest alone)"
LIMITS = {"spsa": 50, "cw": 50, "autoattack": 50, "square": 50}
"""Images that are enough for what takes long."""
CORRUPT = "kattn eval fashion_mnist --corruptions --limit 500"


def _model(folder: str) -> str:
    """The paper's model that a run is of; nothing where the recipe is not there to tell."""
    run = Run(Path(folder))
    return image_run(run).model if run.recipe else ""


def _printed(table: str, row: str, metric: str = "top1", *, sign: int = 1, base: str = BASE) -> Callable[[str], float]:
    def of(folder: str) -> float:
        return sign * printed.difference("rpc", table, row, metric, (_model(folder), base))

    return of


def _attacked(attack: str, ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[(rows["attack"] == attack) & rows["epsilon_units"].str.startswith("pixels")]

    pairs = compared(evidence, "attacks", ours, base, choose=chosen, on=[*IDENTITY, "images"])
    table = "table5" if attack == "square" else "table2"
    return judge_pairs(pairs, above=0, printed=_printed(table, attack, base=model))


def _corrupted(ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    pairs = compared(evidence, "corruption", ours, base, column="error", on=["images", "types"])
    return judge_pairs(pairs, below=0, printed=_printed("table1", "IN-C", sign=-1, base=model))


def _mce(evidence: Evidence) -> list[Finding]:
    on = ["corruption", "reference"]
    pairs = compared(evidence, "corruption_errors", OURS, BASE, column="corruption_error", on=on)
    return judge_pairs(pairs, below=0, printed=_printed("table1", "IN-C", "mce"))


def _out_of_distribution(evidence: Evidence) -> list[Finding]:
    def scored(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.dropna(subset="aupr") if "aupr" in rows else rows.iloc[:0].assign(aupr=0.0)

    pairs = compared(evidence, "eval", OURS, BASE, column="aupr", choose=scored, on=["split", "images"])
    return judge_pairs(pairs, above=0, printed=_printed("table1", "IN-O", "aupr"))


def _clean(ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    return more_accurate(evidence, ours, base, printed=_printed("table1", "IN-1K", base=model))


def _attack(name: str) -> str:
    return f"kattn attack fashion_mnist --{name} --limit {LIMITS.get(name, 200)}"


CLAIMS = [
    Claim(
        "Table 1",
        "RPC-Attention is more accurate than symmetric attention on clean images.",
        "difference of test top-1, paired by seed; holds above 0 points",
        "kattn eval fashion_mnist",
        partial(_clean, OURS, BASE, BASE),
    ),
    Claim(
        "Tables 1 and 4",
        "RPC-Attention is more robust than symmetric attention under corruption.",
        "difference of the mean error over 15 types × 5 severities, paired by seed; holds below 0 points",
        CORRUPT,
        partial(_corrupted, OURS, BASE, BASE),
    ),
    Claim(
        "Tables 1 and 4",
        "RPC-Attention has a lower mCE than symmetric attention.",
        "difference of mCE (with one reference model for both), paired by seed; holds below 0 points",
        f"{CORRUPT} --reference fashion_mnist/softmax",
        _mce,
    ),
    Claim(
        "Table 1",
        "RPC-Attention tells images out of distribution better than symmetric attention.",
        "difference of AUPR, paired by seed; holds above 0 points",
        "kattn eval fashion_mnist --ood FOLDER",
        _out_of_distribution,
    ),
    *(
        Claim(
            "Table 2, Figure 3 (left)" if name in ("pgd", "fgsm") else "Table 2",
            f"RPC-Attention is more robust than symmetric attention under {told}.",
            f"difference of top-1 under attack, {MEASURED}, paired by seed; holds above 0 points",
            _attack(name),
            partial(_attacked, name, OURS, BASE, BASE),
        )
        for name, told in ATTACKS.items()
    ),
    Claim(
        "§4.1, Table 5",
        "RPC-Attention is more robust under the black-box Square attack, so not by masked gradients.",
        "difference of top-1 under attack, paired by seed; holds above 0 points",
        _attack("square"),
        partial(_attacked, "square", OURS, BASE, BASE),
    ),
    Claim(
        "§4.1, Table 1",
        "More iterations in the first layer give cleaner data: six are more accurate than four.",
        "difference of clean test top-1, paired by seed; holds above 0 points",
        "kattn eval fashion_mnist",
        partial(_clean, "rpc_6", "rpc", "rpc 4"),
    ),
    Claim(
        "§4.1, Tables 1 and 4",
        "More iterations in the first layer give cleaner data: six are more robust than four under corruption.",
        "difference of the mean error over 15 types × 5 severities, paired by seed; holds below 0 points",
        CORRUPT,
        partial(_corrupted, "rpc_6", "rpc", "rpc 4"),
    ),
    *(
        Claim(
            "§4.1, Table 2",
            f"More iterations in the first layer give cleaner data: six are more robust than four under {told}.",
            f"difference of top-1 under attack, {MEASURED}, paired by seed; holds above 0 points",
            _attack(name),
            partial(_attacked, name, "rpc_6", "rpc", "rpc 4"),
        )
        for name, told in (("pgd", "PGD"), ("fgsm", "FGSM"))
    ),
]
