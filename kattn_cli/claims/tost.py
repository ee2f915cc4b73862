"""The ToST paper: what TSSA compresses, how its heads cluster tokens, what its class token looks at."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd

from kattn_cli.claims.cost import scaling
from kattn_cli.claims.evidence import Evidence, by_seed, first, last, less, told
from kattn_cli.claims.finding import Claim, Finding, Paper, judged

AUDIT = "kattn audit audit"
COMPARABLE = 3.0
"""Points of top-1 within which two models count as comparable, as ToST-S and ViT-S in Table 2."""


def _falls_with_depth(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/compression"):
        out = last(rows)[lambda part: part["stage"] == "after"]
        by_split = {}
        for split, part in out.groupby("split"):
            ends = [by_seed(part[part["layer"] == one], "rate") for one in (part["layer"].max(), part["layer"].min())]
            by_split[split] = less(*ends)
        rates = out[out["split"] == "validation"].groupby("layer")["rate"].mean()
        steps = ", ".join(f"{rate:.3g}" for rate in rates)
        beside = f"by layer {steps}; on training images {told(by_split['train'])}"
        found.append(judged(label, by_split["validation"], below=0, beside=beside))
    return found


def _each_layer_descends(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/compression"):
        wide = last(rows).pivot_table(index=["run_seed", "split", "layer"], columns="stage", values="rate")
        change = (wide["after"] - wide["before"]).rename("change").reset_index()
        own = change[change["split"] == "validation"]
        layers = ", ".join(f"{one:+.3g}" for one in own.groupby("layer")["change"].mean())
        worst = own.groupby("run_seed")["change"].max()
        values = {int(str(seed)): float(value) for seed, value in worst.items()}
        found.append(judged(label, values, below=0, beside=f"by layer {layers}"))
    return found


def _gain(rows: pd.DataFrame, kind: str) -> dict[int, float]:
    """How much further from chance a map is on its own image's foreground than on other images', by seed."""
    part = rows[rows["kind"] == kind]
    return by_seed(part.assign(gain=(part["auc"] - 0.5).abs() - (part["null_auc"] - 0.5).abs()), "gain")


def _memberships_find_foreground(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/foreground"):
        part = rows[rows["kind"] == "membership"]
        if len(part):
            auc = by_seed(part.assign(far=0.5 + (part["auc"] - 0.5).abs()), "far")
            other = by_seed(part.assign(far=0.5 + (part["null_auc"] - 0.5).abs()), "far")
            beside = f"area {told(auc)}, with other images' foregrounds {told(other)} (either side of 0.5)"
            found.append(judged(label, _gain(rows, "membership"), above=0, beside=beside))
    return found


def _class_maps_segment_better(base: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, ours, other in evidence.pairs("audit/foreground", "tost", base):
        means = [_gain(rows, "class_attention") for rows in (ours, other)]
        beside = f"{told(means[0])} against {told(means[1])}"
        found.append(judged(label, less(*means), above=0, beside=beside))
    return found


def _incoherent(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/coherence"):
        end = last(rows)
        beside = (
            f"{told(by_seed(end, 'coherence'))}, random directions {told(by_seed(end, 'null_mean'))}; largest "
            f"{told(by_seed(end, 'largest'))}; before training {told(by_seed(first(rows), 'coherence'))}"
        )
        excess = by_seed(end.assign(excess=end["coherence"] / end["null_mean"]), "excess")
        found.append(judged(label, excess, below=1.1, beside=beside))
    return found


def _comparable(base: str, evidence: Evidence) -> list[Finding]:
    found = []
    for label, ours, other in evidence.pairs("metrics", "tost", base):
        means = [by_seed(_best(rows), "top1") for rows in (ours, other)]
        beside = f"{told(means[0], 4)} against {told(means[1], 4)} % on validation"
        found.append(judged(label, less(*means), above=-COMPARABLE, beside=beside))
    return found


def _best(rows: pd.DataFrame) -> pd.DataFrame:
    """Of each run the epoch of its best validation accuracy."""
    checked = rows[rows["split"] != "train"].reset_index(drop=True)
    return checked.loc[np.asarray(checked.groupby("run_seed")["top1"].idxmax())]


CLAIMS = [
    Claim(
        "§4.1, Figure 4a",
        "The compression term R^var of the tokens mostly decreases from layer to layer.",
        "R^var after the last layer less that after the first, each in its own subspaces, whose scale is learned, "
        "validation images; holds below 0 nats",
        AUDIT,
        _falls_with_depth,
    ),
    Claim(
        "eq. 10, §3.2",
        "Each layer's update is a descent on its own R^var.",
        "change of R^var by a layer's update, the least favourable layer; holds below 0 nats",
        AUDIT,
        _each_layer_descends,
    ),
    Claim(
        "§4.1, Figures 4b and 9",
        "Memberships cluster the foreground of an image.",
        "|area under the ROC curve − 0.5| of memberships for the foreground, less that for other images' foregrounds, "
        "mean over layers and heads; holds above 0",
        AUDIT,
        _memberships_find_foreground,
    ),
    Claim(
        "Appendix D.4, Figure 11",
        "The learned subspaces are approximately incoherent.",
        "mean |cosine| of directions of different heads over that of random directions; holds below 1.1",
        AUDIT,
        _incoherent,
    ),
    *(
        Claim(
            "§4.2, Figures 5 and 10",
            f"The class token's maps segment images better than {name}'s.",
            "|area − 0.5| for the foreground less that for other images' foregrounds, ToST's less the other's; "
            "holds above 0",
            AUDIT,
            partial(_class_maps_segment_better, base),
        )
        for base, name in (("softmax", "a ViT"), ("xcit", "XCiT"))
    ),
    *(
        Claim(
            "Table 2",
            f"ToST is comparable in accuracy to {name}.",
            "difference of the best validation top-1, paired by seed; holds above −3 points",
            "kattn train audit",
            partial(_comparable, base),
        )
        for base, name in (("softmax", "a ViT"), ("xcit", "XCiT"))
    ),
    Claim(
        "Table 1, Figure 1",
        "TSSA is linear in the number of tokens.",
        "exponent of time (forward + backward) in N, one measurement; holds below 1.2",
        "kattn complexity",
        partial(scaling, "tssa"),
    ),
]

PAPER = Paper(
    "ToST: Token Statistics Transformer",
    CLAIMS,
    ("compression", "membership", "coherence", "subspaces", "foreground", "class_attention"),
)
