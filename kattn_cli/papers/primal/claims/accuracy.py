"""Primal-Attention's paper on accuracy: series, long sequences, images, language, ablations, control (§5, B.2)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim, Estimated, Finding, Kind, Scale
from kattn_cli.papers.evidence import Evidence, by_seed, split_label
from kattn_cli.papers.pairs import Pair, better_on_average, language, more_accurate, shares
from kattn_cli.papers.primal import PAPER
from kattn_cli.tables.margins import CLEAN, PERPLEXED, SCORED

EFFICIENT = ("reformer", "performer", "linformer")
SERIES = "kattn eval series/japanese_vowels"
LRA = "kattn eval lra/small/listops lra/small/image"
NO_LOSS = " eta=0"
HOPPER = "control/small/hopper"
LONG_RANGE = Scale(tokens=1_000, accuracy=30)
"""Its shortest task has 1,024 tokens, and the Transformer of both papers 37 to 42 % on the tasks of ten classes."""


def _on_images(evidence: Evidence) -> list[Finding]:
    """Return the findings beside the paper's number on ImageNet-100; on ImageNet-1K it prints no difference."""
    prints = PAPER.difference("table7a", "ImageNet-100", "top1", ("primal_plus", "softmax"))
    return more_accurate(evidence, "primal_plus", "softmax", printed=lambda folder: prints)


def _both_scores_on_images(evidence: Evidence) -> list[Finding]:
    """Return the findings beside the paper's average over Long-Range Arena, where it has the only numbers."""
    prints = PAPER.difference("table8", "average", "top1", ("primal", "primal e"))
    return more_accurate(evidence, "primal", "primal_e", printed=lambda folder: prints)


def _both_scores(evidence: Evidence) -> list[Finding]:
    return [
        one
        for model in ("primal", "primal_plus")
        for one in better_on_average(PAPER, "table8", "lra", model, (f"{model} e",), 0.0, evidence)
    ]


def _with_loss(evidence: Evidence) -> list[Finding]:
    """Return findings on runs less those of the same s, setting and folder that have η = 0."""
    table = evidence.sequences
    table = table[(table["kind"] == "series") & (table["metric"] == "top1") & (table["model"] == "primal")]
    found: list[Finding] = []
    for (row, _), rows in table.groupby(["row", "setting"], sort=False):
        labels = {str(label): part for label, part in rows.groupby("label", sort=False)}
        values = {label: by_seed(part, "value") for label, part in labels.items()}
        for label, part in labels.items():
            place = str(part["place"].iloc[0])
            without = place.partition(" ")[0] + NO_LOSS
            for other, bare in labels.items():
                same = split_label(label)[::2] == split_label(other)[::2]
                if place.endswith(NO_LOSS) or not same or bare["place"].iloc[0] != without:
                    continue
                peers = {one: values[one] for one in labels if split_label(one)[0] == split_label(label)[0]}
                pair = Pair(label, other, values[label], values[other], peers)
                printed = [PAPER.number("table9", f"{row} {at}", "top1", "primal") for at in (place, without)]
                beside = f"{pair.beside(4)} %, {place}"
                found.append(Estimated(label, beside, printed[0] - printed[1], effect=pair.effect(), why=pair.why))
    return found


CLAIMS = [
    Claim(
        "§5, Table 1",
        "Primal.+ is more accurate than the Transformer on UEA time series.",
        "difference of test top-1, mean over the data sets measured (the paper has ten), paired by seed; better "
        "above 0",
        SERIES,
        partial(better_on_average, PAPER, "table1", "series", "primal_plus", ("softmax",), 0.0),
        margin=CLEAN,
    ),
    *(
        Claim(
            "§5, Table 1",
            f"{name} is comparable to or better than Flowformer on UEA time series.",
            f"difference of test top-1, mean over the data sets measured, paired by seed; holds above −{CLEAN.value:g} "
            "point, our bound",
            SERIES,
            partial(better_on_average, PAPER, "table1", "series", model, ("flowformer",), -CLEAN.value),
        )
        for model, name in (("primal", "Primal."), ("primal_plus", "Primal.+"))
    ),
    Claim(
        "§5, Table 3",
        "Primal.+ is more accurate than the Transformer on Long-Range Arena.",
        "difference of test top-1, mean over the tasks measured (the paper has five), paired by seed; better above 0",
        LRA,
        partial(better_on_average, PAPER, "table3", "lra", "primal_plus", ("softmax",), 0.0),
        margin=CLEAN,
        scale=LONG_RANGE,
    ),
    Claim(
        "§5, Table 3",
        "Primal. is more accurate than Reformer, Performer and Linformer on Long-Range Arena.",
        "difference of test top-1, mean over the tasks measured of both, paired by seed; better above 0",
        LRA,
        partial(better_on_average, PAPER, "table3", "lra", "primal", EFFICIENT, 0.0),
        margin=CLEAN,
        scale=LONG_RANGE,
    ),
    Claim(
        "§5, Table 7(a)",
        "Primal.+ is more accurate than its softmax backbone on images.",
        "difference of clean test top-1, paired by seed; better above 0. The paper claims it of ImageNet-100, "
        "and the same accuracy of ImageNet-1K",
        "kattn eval audit fashion_mnist",
        _on_images,
        margin=CLEAN,
    ),
    Claim(
        "§5, Table 7(b)",
        "Primal.+ has a lower perplexity than the Transformer.",
        "difference of test perplexity in % of it, paired by seed; better below 0",
        "kattn eval language/shakespeare",
        partial(
            language,
            "perplexity",
            ("primal_plus", "softmax"),
            (PAPER, "table7b", "WikiText-103", "perplexity"),
            0.0,
        ),
        margin=PERPLEXED,
    ),
    Claim(
        "§5, Table 8 (arXiv v2)",
        "Both sets of scores are better than the e-scores alone, on Long-Range Arena.",
        "difference of test top-1, mean over the tasks measured, paired by seed; better above 0",
        LRA,
        _both_scores,
        margin=CLEAN,
        scale=LONG_RANGE,
    ),
    Claim(
        "§5, Table 8 (arXiv v2)",
        "Both sets of scores are better than the e-scores alone, on images.",
        "difference of test top-1, paired by seed; better above 0. The paper claims it of Long-Range Arena, whose "
        "average stands beside",
        "kattn eval audit",
        _both_scores_on_images,
        margin=CLEAN,
    ),
    Claim(
        "B.2, Table 9",
        "The KSVD loss makes Primal. more accurate on UEA time series: η > 0 against η = 0.",
        "difference of test top-1, runs of the same s, paired by seed; better above 0",
        "kattn train series/japanese_vowels/primal attention.eta=0.0",
        _with_loss,
        margin=CLEAN,
    ),
    *(
        Claim(
            f"B.2, {where}",
            f"Projections that depend on the data make Primal.+ more accurate than ones that do not, on {on}.",
            "difference of test top-1, mean over the tasks measured, paired by seed; better above 0",
            f"kattn train {recipe} attention.layers.-1.projection=data-independent",
            partial(better_on_average, PAPER, table, kind, "primal_plus", ("primal_plus data-independent",), 0.0),
            margin=CLEAN,
            scale=scale,
        )
        for where, table, kind, on, recipe, scale in (
            ("Table 11", "table11", "series", "UEA time series", "series/japanese_vowels/primal_plus", None),
            ("Table 12", "table12", "lra", "Long-Range Arena", "lra/small/listops/primal_plus", LONG_RANGE),
        )
    ),
    *(
        Claim(
            "§5, Table 5",
            f"Primal.+DT gets a higher reward than {name}.",
            "difference of the normalised score, mean over the data sets measured (the paper has nine), paired by "
            "seed; better above 0",
            f"kattn eval {HOPPER}",
            partial(better_on_average, PAPER, "table5", "control", "primal_plus", (base,), 0.0, metric="reward"),
            margin=SCORED,
        )
        for base, name in (("softmax", "Decision Transformer"), ("flowformer", "Flowformer"))
    ),
    *(
        Claim(
            "§5, Table 6",
            f"Primal.+DT takes about the {quantity} that Decision Transformer takes.",
            f"{measured} over softmax's, each data set by itself, paired by seed; a number beside the paper's, which "
            "says of no bound what is about as much",
            f"kattn train {HOPPER}",
            partial(shares, PAPER, "table6", "control_costs", metric, ("primal_plus",), None),
            kind=Kind.measurement,
        )
        for metric, quantity, measured in (
            ("seconds_per_1k_steps", "time", "time a step"),
            ("memory_gb", "memory", "peak memory"),
        )
    ),
]
