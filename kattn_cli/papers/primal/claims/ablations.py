"""Primal-Attention's ablations: the r-scores, the KSVD loss, the projections (§5, B.2)."""

from __future__ import annotations

from kattn_cli.papers import printed
from kattn_cli.papers.evidence import Evidence, by_seed, less, split_label, told
from kattn_cli.papers.finding import Claim, Finding, judged
from kattn_cli.papers.paired import more_accurate
from kattn_cli.papers.sequences import better_on_average

NO_LOSS = " eta=0"


def _both_scores(evidence: Evidence) -> list[Finding]:
    prints = printed.difference("primal", "table8", "average", "top1", ("primal", "primal e"))
    on_images = more_accurate(evidence, "primal", "primal_e", printed=lambda folder: prints)
    on_sequences = [
        one
        for model in ("primal", "primal_plus")
        for one in better_on_average("primal", "table8", "lra", model, (f"{model} e",), 0.0, evidence)
    ]
    return [*on_images, *on_sequences]


def _with_loss(evidence: Evidence) -> list[Finding]:
    """Runs less those of the same s, setting and folder that have η = 0."""
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
                rows_printed = (f"{row} {place}", f"{row} {without}")
                prints = printed.difference_of_rows("primal", "table9", rows_printed, "top1", "primal")
                beside = f"{told(ours, 4)} against {told(theirs, 4)} %, {place}"
                found.append(judged(label, less(ours, theirs), above=0, beside=beside, paper_number=prints))
    return found


def _dependent(evidence: Evidence) -> list[Finding]:
    model = "primal_plus"
    bases = (f"{model} data-independent",)
    return [
        one
        for table, kind in (("table11", "series"), ("table12", "lra"))
        for one in better_on_average("primal", table, kind, model, bases, 0.0, evidence)
    ]


CLAIMS = [
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
]
