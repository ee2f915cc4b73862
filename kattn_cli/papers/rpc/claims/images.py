"""RPC-Attention's paper on images: clean, corrupted, out of distribution, attacked (§4.1), segmented (E.5), FAN."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pandas as pd

from kattn_cli.papers.claim import Claim, Finding
from kattn_cli.papers.described import FAN, image_run
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.pairs import ImagePair, clean_pairs, differences, image_pairs
from kattn_cli.papers.rpc import PAPER
from kattn_cli.runs.run import Run
from kattn_cli.tables.margins import ATTACKED, CLEAN, CORRUPTED, MCE, OUT_OF_DISTRIBUTION, SEGMENTED

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
THEIRS = re.compile(r"rpc \d+( all)?")
"""The paper's models that it compares with symmetric attention."""
CANVASES = "kattn eval segmentation/canvases"
CORRUPT = "kattn eval fashion_mnist --corruptions --limit 500"


def _described(folder: str) -> tuple[str, bool]:
    """Return the paper's model of the run in a folder, and whether it is a FAN; nothing without a recipe."""
    run = Run(Path(folder))
    if not run.recipe:
        return "", False
    found = image_run(run)
    return found.model, found.facts["architecture"] == FAN


def _among(pairs: Iterator[ImagePair], fan: bool = False) -> Iterator[ImagePair]:
    """Return the pairs of FANs, or else all others: a FAN's numbers stand in tables of their own.

    Of RPC-Attention as the paper has it above symmetric attention: without outliers, with another sign or with queries
    of its own it is another mechanism.
    """
    for pair in pairs:
        model, is_fan = _described(pair.folder)
        if is_fan == fan and (THEIRS.fullmatch(model) or not Run(Path(pair.folder)).recipe):
            yield pair


def _printed(table: str, row: str, metric: str = "top1", *, sign: int = 1, base: str = BASE) -> Callable[[str], float]:
    def of(folder: str) -> float:
        return sign * PAPER.difference(table, row, metric, (_described(folder)[0], base))

    return of


def _printed_of_fan(table: str, row: str, folder: str) -> float:
    ours = {"rpc 4": "RPC-FAN-tiny"}.get(_described(folder)[0], "")
    return PAPER.difference(table, row, "top1", (ours, "FAN-tiny"))


def _under(attack: str, ours: str, base: str, evidence: Evidence) -> Iterator[ImagePair]:
    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[(rows["attack"] == attack) & rows["epsilon_units"].str.startswith("pixels")]

    return image_pairs(evidence, "attacks", ours, base, choose=chosen, one_of=["norm", "targeted", "epsilon"])


def _attacked(attack: str, ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    table = "table5" if attack == "square" else "table2"
    pairs = _among(_under(attack, ours, base, evidence))
    return differences(pairs, above=0, printed=_printed(table, attack, base=model))


def _fan_attacked(attack: str, evidence: Evidence) -> list[Finding]:
    pairs = _among(_under(attack, OURS, BASE, evidence), fan=True)
    return differences(pairs, above=0, printed=partial(_printed_of_fan, "table10", attack))


def _fan_clean(evidence: Evidence) -> list[Finding]:
    pairs = _among(clean_pairs(evidence, OURS, BASE), fan=True)
    return differences(pairs, above=0, digits=4, printed=partial(_printed_of_fan, "table9", "IN-1K"))


def _corrupted(ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    pairs = image_pairs(evidence, "corruption", ours, base, column="error", one_of=["types"])
    return differences(_among(pairs), below=0, printed=_printed("table1", "IN-C", sign=-1, base=model))


def _mce(evidence: Evidence) -> list[Finding]:
    def compared(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.dropna(subset="corruption_error")

    pairs = image_pairs(
        evidence,
        "corruption_errors",
        OURS,
        BASE,
        choose=compared,
        column="corruption_error",
        one_of=["corruption", "reference"],
    )
    return differences(_among(pairs), below=0, printed=_printed("table1", "IN-C", "mce"))


def _out_of_distribution(evidence: Evidence) -> list[Finding]:
    def scored(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.dropna(subset="aupr") if "aupr" in rows else rows.iloc[:0].assign(aupr=0.0)

    pairs = image_pairs(evidence, "eval", OURS, BASE, column="aupr", choose=scored, one_of=["split"])
    return differences(_among(pairs), above=0, printed=_printed("table1", "IN-O", "aupr"))


def _clean(ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    pairs = _among(clean_pairs(evidence, ours, base))
    return differences(pairs, above=0, digits=4, printed=_printed("table1", "IN-1K", base=model))


def _attack(name: str) -> str:
    return f"kattn attack fashion_mnist --{name} --limit {LIMITS.get(name, 200)}"


def _segments_better(row: str, corrupted: bool, metric: str, evidence: Evidence) -> list[Finding]:
    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        test = rows[rows["split"] == "test"].fillna({"corruption": ""})
        return test[(test["corruption"] != "") == corrupted]

    def prints(folder: str) -> float:
        return PAPER.difference("table6", row, metric, (_described(folder)[0], BASE))

    one_of = ["corruption", "severity"]
    pairs = image_pairs(evidence, "segmentation", "rpc*", BASE, choose=chosen, column=metric, one_of=one_of)
    return differences(pairs, above=0, printed=prints)


def _segmentation(what: str, row: str, corrupted: bool, metric: str, named: str) -> Claim:
    over = ", mean over 15 types × 5 severities" if corrupted else ""
    judge: Callable[[Evidence], list[Finding]] = partial(_segments_better, row, corrupted, metric)
    return Claim(
        "E.5, Table 6",
        f"Segmenter with RPC-Attention has a higher {named} than with symmetric attention {what}.",
        f"difference of {named}{over}, paired by seed; better above 0",
        f"{CANVASES} --corruptions" if corrupted else CANVASES,
        judge,
        margin=SEGMENTED,
    )


CLAIMS = [
    Claim(
        "Table 1",
        "RPC-Attention is more accurate than symmetric attention on clean images.",
        "difference of test top-1, paired by seed; better above 0",
        "kattn eval fashion_mnist",
        partial(_clean, OURS, BASE, BASE),
        margin=CLEAN,
    ),
    Claim(
        "Tables 1 and 4",
        "RPC-Attention is more robust than symmetric attention under corruption.",
        "difference of the mean error over 15 types × 5 severities, paired by seed; better below 0",
        CORRUPT,
        partial(_corrupted, OURS, BASE, BASE),
        margin=CORRUPTED,
    ),
    Claim(
        "Tables 1 and 4",
        "RPC-Attention has a lower mCE than symmetric attention.",
        "difference of mCE (with one reference model for both), paired by seed; better below 0",
        f"{CORRUPT} --reference fashion_mnist/softmax",
        _mce,
        margin=MCE,
    ),
    Claim(
        "Table 1",
        "RPC-Attention tells images out of distribution better than symmetric attention.",
        "difference of AUPR, paired by seed; better above 0",
        "kattn eval fashion_mnist --ood FOLDER",
        _out_of_distribution,
        margin=OUT_OF_DISTRIBUTION,
    ),
    *(
        Claim(
            "Table 2, Figure 3 (left)" if name in ("pgd", "fgsm") else "Table 2",
            f"RPC-Attention is more robust than symmetric attention under {attack}.",
            f"difference of top-1 under attack, {MEASURED}, paired by seed; better above 0",
            _attack(name),
            partial(_attacked, name, OURS, BASE, BASE),
            margin=ATTACKED,
        )
        for name, attack in ATTACKS.items()
    ),
    Claim(
        "§4.1, Table 5",
        "RPC-Attention is more robust under the black-box Square attack, so not by masked gradients.",
        "difference of top-1 under attack, paired by seed; better above 0",
        _attack("square"),
        partial(_attacked, "square", OURS, BASE, BASE),
        margin=ATTACKED,
    ),
    Claim(
        "§4.1, Table 1",
        "More iterations in the first layer give cleaner data: six are more accurate than four.",
        "difference of clean test top-1, paired by seed; better above 0",
        "kattn eval fashion_mnist",
        partial(_clean, "rpc_6", "rpc", "rpc 4"),
        margin=CLEAN,
    ),
    Claim(
        "§4.1, Tables 1 and 4",
        "More iterations in the first layer give cleaner data: six are more robust than four under corruption.",
        "difference of the mean error over 15 types × 5 severities, paired by seed; better below 0",
        CORRUPT,
        partial(_corrupted, "rpc_6", "rpc", "rpc 4"),
        margin=CORRUPTED,
    ),
    *(
        Claim(
            "§4.1, Table 2",
            f"More iterations in the first layer give cleaner data: six are more robust than four under {attack}.",
            f"difference of top-1 under attack, {MEASURED}, paired by seed; better above 0",
            _attack(name),
            partial(_attacked, name, "rpc_6", "rpc", "rpc 4"),
            margin=ATTACKED,
        )
        for name, attack in (("pgd", "PGD"), ("fgsm", "FGSM"))
    ),
    Claim(
        "E.7, Table 9",
        "FAN with RPC-Attention in its first layer is more accurate than with symmetric attention.",
        "difference of test top-1, paired by seed; better above 0",
        "kattn eval fashion_mnist/fan",
        _fan_clean,
        margin=CLEAN,
    ),
    *(
        Claim(
            "E.7, Table 10",
            f"Under {attack}, FAN with RPC-Attention in its first layer is more robust than with symmetric attention.",
            f"difference of top-1 under attack, {MEASURED}, paired by seed; better above 0",
            f"kattn attack fashion_mnist/fan --{name} --limit 200",
            partial(_fan_attacked, name),
            margin=ATTACKED,
        )
        for name, attack in (("pgd", "PGD"), ("fgsm", "FGSM"))
    ),
    *(
        _segmentation(what, row, corrupted, metric, named)
        for what, row, corrupted in (
            ("on clean images", "ADE20K", False),
            ("on corrupted images", "corrupted ADE20K", True),
        )
        for metric, named in (("mean_iou", "mean IoU"), ("mean_accuracy", "mean accuracy"))
    ),
]
