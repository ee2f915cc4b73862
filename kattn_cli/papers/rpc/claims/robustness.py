"""RPC-Attention's paper on images (§4.1): clean, corrupted, out of distribution, attacked."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import pandas as pd

from kattn_cli.papers import printed
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.finding import Claim, Finding
from kattn_cli.papers.paired import Pair, clean_pairs, compared, judge_pairs
from kattn_cli.papers.rpc.claims.models import described
from kattn_cli.tables.attack_names import IDENTITY

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


def _among(pairs: Iterator[Pair], fan: bool = False) -> Iterator[Pair]:
    """Those of FANs, or else all others: a FAN's numbers stand in tables of their own."""
    return (pair for pair in pairs if described(pair.folder)[1] == fan)


def _printed(table: str, row: str, metric: str = "top1", *, sign: int = 1, base: str = BASE) -> Callable[[str], float]:
    def of(folder: str) -> float:
        return sign * printed.difference("rpc", table, row, metric, (described(folder)[0], base))

    return of


def _printed_of_fan(table: str, row: str, folder: str) -> float:
    ours = {"rpc 4": "RPC-FAN-tiny"}.get(described(folder)[0], "")
    return printed.difference("rpc", table, row, "top1", (ours, "FAN-tiny"))


def _under(attack: str, ours: str, base: str, evidence: Evidence) -> Iterator[Pair]:
    def chosen(rows: pd.DataFrame) -> pd.DataFrame:
        return rows[(rows["attack"] == attack) & rows["epsilon_units"].str.startswith("pixels")]

    return compared(evidence, "attacks", ours, base, choose=chosen, on=[*IDENTITY, "images"])


def _attacked(attack: str, ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    table = "table5" if attack == "square" else "table2"
    pairs = _among(_under(attack, ours, base, evidence))
    return judge_pairs(pairs, above=0, printed=_printed(table, attack, base=model))


def _fan_attacked(attack: str, evidence: Evidence) -> list[Finding]:
    pairs = _among(_under(attack, OURS, BASE, evidence), fan=True)
    return judge_pairs(pairs, above=0, printed=partial(_printed_of_fan, "table10", attack))


def _fan_clean(evidence: Evidence) -> list[Finding]:
    pairs = _among(clean_pairs(evidence, OURS, BASE), fan=True)
    return judge_pairs(pairs, above=0, digits=4, printed=partial(_printed_of_fan, "table9", "IN-1K"))


def _corrupted(ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    pairs = compared(evidence, "corruption", ours, base, column="error", on=["images", "types"])
    return judge_pairs(_among(pairs), below=0, printed=_printed("table1", "IN-C", sign=-1, base=model))


def _mce(evidence: Evidence) -> list[Finding]:
    on = ["corruption", "reference"]
    pairs = compared(evidence, "corruption_errors", OURS, BASE, column="corruption_error", on=on)
    return judge_pairs(_among(pairs), below=0, printed=_printed("table1", "IN-C", "mce"))


def _out_of_distribution(evidence: Evidence) -> list[Finding]:
    def scored(rows: pd.DataFrame) -> pd.DataFrame:
        return rows.dropna(subset="aupr") if "aupr" in rows else rows.iloc[:0].assign(aupr=0.0)

    pairs = compared(evidence, "eval", OURS, BASE, column="aupr", choose=scored, on=["split", "images"])
    return judge_pairs(_among(pairs), above=0, printed=_printed("table1", "IN-O", "aupr"))


def _clean(ours: str, base: str, model: str, evidence: Evidence) -> list[Finding]:
    pairs = _among(clean_pairs(evidence, ours, base))
    return judge_pairs(pairs, above=0, digits=4, printed=_printed("table1", "IN-1K", base=model))


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
    Claim(
        "E.7, Table 9",
        "FAN with RPC-Attention in its first layer is more accurate than with symmetric attention.",
        "difference of test top-1, paired by seed; holds above 0 points",
        "kattn eval fashion_mnist/fan",
        _fan_clean,
    ),
    *(
        Claim(
            "E.7, Table 10",
            f"Under {told}, FAN with RPC-Attention in its first layer is more robust than with symmetric attention.",
            f"difference of top-1 under attack, {MEASURED}, paired by seed; holds above 0 points",
            f"kattn attack fashion_mnist/fan --{name} --limit 200",
            partial(_fan_attacked, name),
        )
        for name, told in (("pgd", "PGD"), ("fgsm", "FGSM"))
    ),
]
