"""The ToST paper on what its memberships and its class token pick out of an image (§4.1, §4.2)."""

from __future__ import annotations

from functools import partial

import pandas as pd

from kattn_cli.papers.claim import Claim, Estimated, Finding, against_bound
from kattn_cli.papers.evidence import Evidence, by_seed, shown
from kattn_cli.papers.pairs import Pair
from kattn_cli.tables.margins import FOREGROUND

AUDIT = "kattn audit audit"


def _gain(rows: pd.DataFrame, kind: str) -> dict[int, float]:
    """Return by seed how much further from chance a map is on its own image's foreground than on others'."""
    part = rows[rows["kind"] == kind]
    return by_seed(part.assign(gain=(part["auc"] - 0.5).abs() - (part["null_auc"] - 0.5).abs()), "gain")


def _memberships_find_foreground(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/foreground"):
        part = rows[rows["kind"] == "membership"]
        if len(part):
            auc = by_seed(part.assign(far=0.5 + (part["auc"] - 0.5).abs()), "far")
            other = by_seed(part.assign(far=0.5 + (part["null_auc"] - 0.5).abs()), "far")
            beside = f"area {shown(auc)}, with other images' foregrounds {shown(other)} (either side of 0.5)"
            found.append(against_bound(label, _gain(rows, "membership"), above=0, beside=beside))
    return found


def _class_maps_segment_better(base: str, evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, ours, other in evidence.pairs("audit/foreground", "tost", base):
        gain, its = (_gain(rows, "class_attention") for rows in (ours, other))
        peers = {
            name: _gain(rows, "class_attention") for name, rows in evidence.trained_with("audit/foreground", label)
        }
        pair = Pair(label, str(other["label"].iloc[0]), gain, its, peers)
        found.append(Estimated(label, pair.beside(), effect=pair.effect(), why=pair.why))
    return found


CLAIMS = [
    Claim(
        "§4.1, Figures 4b and 9",
        "Memberships cluster the foreground of an image.",
        "|area under the ROC curve − 0.5| of memberships for the foreground, less that for other images' foregrounds, "
        "mean over layers and heads; holds above 0",
        AUDIT,
        _memberships_find_foreground,
    ),
    *(
        Claim(
            "§4.2, Figures 5 and 10",
            f"The class token's maps segment images better than {name}'s.",
            "|area − 0.5| for the foreground less that for other images' foregrounds, ToST's less the other's, "
            "paired by seed; better above 0",
            AUDIT,
            partial(_class_maps_segment_better, base),
            margin=FOREGROUND,
        )
        for base, name in (("softmax", "a ViT"), ("xcit", "XCiT"))
    ),
]
