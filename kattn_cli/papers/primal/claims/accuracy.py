"""Primal-Attention's paper on accuracy: series, long sequences, images, language, ablations, control (§5, B.2)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim, Finding, judged
from kattn_cli.papers.evidence import Evidence, by_seed, less, shown, split_label
from kattn_cli.papers.pairs import better_on_average, language, more_accurate, within
from kattn_cli.papers.primal import PAPER

COMPARABLE = 2.0
"""Points of top-1 within which two models count as comparable."""
EFFICIENT = ("reformer", "performer", "linformer")
SERIES = "kattn eval series/japanese_vowels"
LRA = "kattn eval lra/small/listops lra/small/image"
NO_LOSS = " eta=0"
HOPPER = "control/small/hopper"
AS_COSTLY = 1.25
"""Times as much within which two models count as comparable; the paper's own are 1.13 of the time, and the memory."""


def _on_images(evidence: Evidence) -> list[Finding]:
    """Return the findings beside the paper's number on ImageNet-100; on ImageNet-1K it prints no difference."""
    prints = PAPER.difference("table7a", "ImageNet-100", "top1", ("primal_plus", "softmax"))
    return more_accurate(evidence, "primal_plus", "softmax", printed=lambda folder: prints)


def _both_scores(evidence: Evidence) -> list[Finding]:
    prints = PAPER.difference("table8", "average", "top1", ("primal", "primal e"))
    on_images = more_accurate(evidence, "primal", "primal_e", printed=lambda folder: prints)
    on_sequences = [
        one
        for model in ("primal", "primal_plus")
        for one in better_on_average(PAPER, "table8", "lra", model, (f"{model} e",), 0.0, evidence)
    ]
    return [*on_images, *on_sequences]


def _with_loss(evidence: Evidence) -> list[Finding]:
    """Return findings on runs less those of the same s, setting and folder that have η = 0."""
    table = evidence.sequences
    table = table[(table["kind"] == "series") & (table["metric"] == "top1") & (table["model"] == "primal")]
    found = []
    for (row, _), rows in table.groupby(["row", "setting"], sort=False):
        labels = {str(label): part for label, part in rows.groupby("label", sort=False)}
        for label, part in labels.items():
            place = str(part["place"].iloc[0])
            without = place.partition(" ")[0] + NO_LOSS
            for other, bare in labels.items():
                same = split_label(label)[::2] == split_label(other)[::2]
                if place.endswith(NO_LOSS) or not same or bare["place"].iloc[0] != without:
                    continue
                ours, theirs = by_seed(part, "value"), by_seed(bare, "value")
                printed = [PAPER.number("table9", f"{row} {at}", "top1", "primal") for at in (place, without)]
                prints = printed[0] - printed[1]
                beside = f"{shown(ours, 4)} against {shown(theirs, 4)} %, {place}"
                found.append(judged(label, less(ours, theirs), above=0, beside=beside, paper_number=prints))
    return found


def _dependent(evidence: Evidence) -> list[Finding]:
    model = "primal_plus"
    bases = (f"{model} data-independent",)
    return [
        one
        for table, kind in (("table11", "series"), ("table12", "lra"))
        for one in better_on_average(PAPER, table, kind, model, bases, 0.0, evidence)
    ]


CLAIMS = [
    Claim(
        "§5, Table 1",
        "Primal.+ is more accurate than the Transformer on UEA time series.",
        "difference of test top-1, mean over the data sets measured (the paper has ten), paired by seed; holds above "
        "0 points",
        SERIES,
        partial(better_on_average, PAPER, "table1", "series", "primal_plus", ("softmax",), 0.0),
    ),
    *(
        Claim(
            "§5, Table 1",
            f"{name} is comparable to or better than Flowformer on UEA time series.",
            f"difference of test top-1, mean over the data sets measured, paired by seed; holds above −{COMPARABLE:g} "
            "points",
            SERIES,
            partial(better_on_average, PAPER, "table1", "series", model, ("flowformer",), -COMPARABLE),
        )
        for model, name in (("primal", "Primal."), ("primal_plus", "Primal.+"))
    ),
    Claim(
        "§5, Table 3",
        "Primal.+ is more accurate than the Transformer on Long-Range Arena.",
        "difference of test top-1, mean over the tasks measured (the paper has five), paired by seed; holds above 0 "
        "points",
        LRA,
        partial(better_on_average, PAPER, "table3", "lra", "primal_plus", ("softmax",), 0.0),
    ),
    Claim(
        "§5, Table 3",
        "Primal. is more accurate than Reformer, Performer and Linformer on Long-Range Arena.",
        "difference of test top-1, mean over the tasks measured of both, paired by seed; holds above 0 points",
        LRA,
        partial(better_on_average, PAPER, "table3", "lra", "primal", EFFICIENT, 0.0),
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
            (PAPER, "table7b", "WikiText-103", "perplexity"),
            0.0,
        ),
    ),
    Claim(
        "§5, Table 8 (arXiv v2)",
        "Both sets of scores are better than the e-scores alone.",
        "difference of test top-1, paired by seed; holds above 0 points. The paper claims it of Long-Range Arena; "
        "beside images stands its average there",
        "kattn eval audit",
        _both_scores,
    ),
    Claim(
        "B.2, Table 9",
        "The KSVD loss makes Primal. more accurate on UEA time series: η > 0 against η = 0.",
        "difference of test top-1, runs of the same s, paired by seed; holds above 0 points",
        "kattn train series/japanese_vowels/primal attention.eta=0.0",
        _with_loss,
    ),
    Claim(
        "B.2, Tables 11 and 12",
        "Projections that depend on the data make Primal.+ more accurate than ones that do not.",
        "difference of test top-1, mean over the tasks measured, paired by seed; holds above 0 points",
        "kattn train lra/small/listops/primal_plus attention.layers.-1.projection=data-independent",
        _dependent,
    ),
    *(
        Claim(
            "§5, Table 5",
            f"Primal.+DT gets a higher reward than {name}.",
            "difference of the normalised score, mean over the data sets measured (the paper has nine), paired by "
            "seed; holds above 0 points",
            f"kattn eval {HOPPER}",
            partial(better_on_average, PAPER, "table5", "control", "primal_plus", (base,), 0.0, metric="reward"),
        )
        for base, name in (("softmax", "Decision Transformer"), ("flowformer", "Flowformer"))
    ),
    *(
        Claim(
            "§5, Table 6",
            f"Primal.+DT takes about the {quantity} that Decision Transformer takes.",
            f"{measured} over softmax's, each data set by itself, paired by seed; holds below {AS_COSTLY:g}",
            f"kattn train {HOPPER}",
            partial(within, PAPER, "table6", "control_costs", metric, ("primal_plus", "softmax"), AS_COSTLY),
        )
        for metric, quantity, measured in (
            ("seconds_per_1k_steps", "time", "time a step"),
            ("memory_gb", "memory", "peak memory"),
        )
    ),
]
