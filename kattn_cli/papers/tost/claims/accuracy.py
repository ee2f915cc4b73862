"""The ToST paper on accuracy: images, long sequences, language, and its ablation (§4.2, §4.3, D.1)."""

from __future__ import annotations

import math
from functools import partial

import numpy as np
import pandas as pd

from kattn_cli.papers.claim import Claim, Finding, Scale
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.pairs import better_on_average, differences, image_pairs, language, more_accurate
from kattn_cli.papers.tost import PAPER
from kattn_cli.tables.margins import CLEAN

COMPARABLE = 3.0
"""Points of top-1 within which two models count as comparable, our bound; the paper calls 1.9 and 2.6 so."""
PRESERVED = 0.36
"""Nats by which the loss may grow and still be largely preserved, as ToST-Base's on OpenWebText in Table 4."""
LONG_RANGE = Scale(tokens=1_000, accuracy=30)
"""Its shortest task has 1,024 tokens, and the Transformer of both papers 37 to 42 % on the tasks of ten classes."""
LRA = "kattn eval lra/small/listops lra/small/image"
OTHERS = ("reformer", "bigbird", "linformer", "performer")
PRINTED = {"softmax": "softmax small", "xcit": "xca small"}


def _comparable(ours: str, base: str, evidence: Evidence) -> list[Finding]:
    """Return findings by the best epoch on validation, which all trainings keep."""
    pairs = image_pairs(evidence, "metrics", ours, base, choose=_best)
    models = ("tssa small", PRINTED[base]) if ours == "tost" else ("", "")
    prints = PAPER.difference("table2", "ImageNet", "top1", models)
    return differences(pairs, above=-COMPARABLE, unit="% on validation", digits=4, printed=lambda folder: prints)


def _best(rows: pd.DataFrame) -> pd.DataFrame:
    """Return of each run the epoch of its best validation accuracy."""
    checked = rows[rows["split"] != "train"].reset_index(drop=True)
    return checked.loc[np.asarray(checked.groupby("run_seed")["top1"].idxmax())]


def _ablated(without: str, model: str, evidence: Evidence) -> list[Finding]:
    """Return findings at the paper's size and at ours."""
    prints = PAPER.difference("table8", "CIFAR10", "top1", ("tssa", model))
    return [
        one
        for size in ("ablation_", "ablation_small_")
        for one in more_accurate(evidence, f"{size}mlp", f"{size}{without}", printed=lambda folder: prints)
    ]


CLAIMS = [
    *(
        Claim(
            "§4.2, Table 2",
            f"ToST is comparable in accuracy to {name}.",
            f"difference of the best validation top-1, paired by seed; holds above −{COMPARABLE:g}, our bound",
            "kattn train audit",
            partial(_comparable, "tost", base),
        )
        for base, name in (("softmax", "a ViT"), ("xcit", "XCiT"))
    ),
    Claim(
        "§4, second question",
        "TSSA in place of self-attention, all else unchanged, maintains a ViT's accuracy.",
        f"difference of the best validation top-1, paired by seed; holds above −{COMPARABLE:g}, our bound",
        "kattn train quickstart fashion_mnist",
        partial(_comparable, "tssa", "softmax"),
    ),
    Claim(
        "§4.3, Table 3",
        "ToST outperforms the Transformer on Long-Range Arena on average.",
        "difference of test top-1, mean over the tasks measured (the paper has five), paired by seed; better above 0",
        LRA,
        partial(better_on_average, PAPER, "table3", "lra", "tssa", ("softmax",), 0.0),
        margin=CLEAN,
        scale=LONG_RANGE,
    ),
    Claim(
        "§4.3, Table 3",
        "ToST outperforms Reformer, BigBird, Linformer and Performer on Long-Range Arena on average.",
        "difference of test top-1, mean over the tasks measured of both, paired by seed; better above 0",
        LRA,
        partial(better_on_average, PAPER, "table3", "lra", "tssa", OTHERS, 0.0),
        margin=CLEAN,
        scale=LONG_RANGE,
    ),
    Claim(
        "§4.3, Table 4",
        "Causal TSSA in place of self-attention largely preserves a language model's performance.",
        f"difference of the test loss, paired by seed; holds below {PRESERVED:g} nats, the paper's own on OpenWebText",
        "kattn eval language/shakespeare",
        partial(
            language,
            "perplexity",
            ("tssa", "softmax"),
            (PAPER, "table4", "OpenWebText", "loss"),
            PRESERVED,
            value=math.log,
        ),
    ),
    *(
        Claim(
            "D.1, Table 8",
            f"ToST with normalised memberships and an MLP is more accurate than {ablated}.",
            "difference of test top-1, paired by seed; better above 0",
            "kattn eval cifar10",
            partial(_ablated, without, model),
            margin=CLEAN,
        )
        for without, model, ablated in (
            ("no_norm_mlp", "tssa no norm", "without the normalisation"),
            ("ista", "tssa ista", "with ISTA in place of the MLP"),
        )
    ),
]
