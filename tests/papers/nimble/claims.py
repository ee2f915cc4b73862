"""Its one claim."""

from __future__ import annotations

from papers.nimble import PAPER

from kattn_cli.papers.claim import Claim, Finding
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.pairs import more_accurate
from kattn_cli.tables.margins import CLEAN


def _better(evidence: Evidence) -> list[Finding]:
    printed = PAPER.difference("table1", "Digits", "top1", ("tssa", "softmax"))
    return more_accurate(evidence, "tssa", "softmax", printed=lambda folder: printed)


CLAIMS = [
    Claim(
        "Table 1",
        "TSSA is nimbler than softmax.",
        "difference of test top-1, paired by seed; better above 0",
        "kattn eval quickstart",
        _better,
        margin=CLEAN,
    )
]
