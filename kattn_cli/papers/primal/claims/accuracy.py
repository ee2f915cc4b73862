"""Primal-Attention's paper on accuracy: series, long sequences, images, language (§5)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers import printed
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.finding import Claim, Finding
from kattn_cli.papers.paired import more_accurate
from kattn_cli.papers.sequences import better_on_average, language

COMPARABLE = 2.0
"""Points of top-1 within which two models count as comparable."""
EFFICIENT = ("reformer", "performer", "linformer")
SERIES = "kattn eval series/japanese_vowels"
LRA = "kattn eval lra/small/listops lra/small/image"


def _on_images(evidence: Evidence) -> list[Finding]:
    """The paper's number is that of ImageNet-100; on ImageNet-1K it prints no difference."""
    prints = printed.difference("primal", "table7a", "ImageNet-100", "top1", ("primal_plus", "softmax"))
    return more_accurate(evidence, "primal_plus", "softmax", printed=lambda folder: prints)


CLAIMS = [
    Claim(
        "§5, Table 1",
        "Primal.+ is more accurate than the Transformer on UEA time series.",
        "difference of test top-1, mean over the data sets measured (the paper has ten), paired by seed; holds above "
        "0 points",
        SERIES,
        partial(better_on_average, "primal", "table1", "series", "primal_plus", ("softmax",), 0.0),
    ),
    *(
        Claim(
            "§5, Table 1",
            f"{name} is comparable to or better than Flowformer on UEA time series.",
            f"difference of test top-1, mean over the data sets measured, paired by seed; holds above −{COMPARABLE:g} "
            "points",
            SERIES,
            partial(better_on_average, "primal", "table1", "series", model, ("flowformer",), -COMPARABLE),
        )
        for model, name in (("primal", "Primal."), ("primal_plus", "Primal.+"))
    ),
    Claim(
        "§5, Table 3",
        "Primal.+ is more accurate than the Transformer on Long-Range Arena.",
        "difference of test top-1, mean over the tasks measured (the paper has five), paired by seed; holds above 0 "
        "points",
        LRA,
        partial(better_on_average, "primal", "table3", "lra", "primal_plus", ("softmax",), 0.0),
    ),
    Claim(
        "§5, Table 3",
        "Primal. is more accurate than Reformer, Performer and Linformer on Long-Range Arena.",
        "difference of test top-1, mean over the tasks measured of both, paired by seed; holds above 0 points",
        LRA,
        partial(better_on_average, "primal", "table3", "lra", "primal", EFFICIENT, 0.0),
    ),
    Claim(
        "§5, Table 7(a)",
        "Primal.+ is more accurate than its softmax backbone on images.",
        "difference of clean test top-1, paired by seed; holds above 0 points. The paper claims it of ImageNet-100, "
        "and the same accuracy of ImageNet-1K",
        "kattn eval audit fashion_mnist",
        _on_images,
    ),
    Claim(
        "§5, Table 7(b)",
        "Primal.+ has a lower perplexity than the Transformer.",
        "difference of test perplexity, paired by seed; holds below 0",
        "kattn eval language/shakespeare",
        partial(
            language,
            "perplexity",
            ("primal_plus", "softmax"),
            ("primal", "table7b", "WikiText-103", "perplexity"),
            0.0,
        ),
    ),
]
