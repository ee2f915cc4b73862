"""SST-2: sentences of film reviews, liked or not (Socher et al., 2013; its neutral sentences are left out)."""

from __future__ import annotations

from kattn_cli.data.sets.sentences.lines import LineSet


class Sst2(LineSet):
    """6,920 sentences to train on, 872 to choose by, 1,821 to test on; ``root`` holds ``{train,dev,test}.tsv``.

    A line is a sentence, a tab, and 0 (negative) or 1 (positive). These are whole sentences only; GLUE's SST-2 has the
    67,349 phrases below them too, and no labels of its test sentences.
    """

    name = "sst2"
    description = "9,613 sentences of film reviews, liked or not"
    how_to_get = (
        "kattn data fetch sst2 downloads SetFit/sst2 from the Hugging Face hub, and so does download: true; or give a "
        "folder with train.tsv, dev.tsv and test.tsv as root: a sentence, a tab, and 0 or 1 a line"
    )
    classes = 2
    file_names = {"train": "train.tsv", "validation": "dev.tsv", "test": "test.tsv"}  # noqa: RUF012
    form = "a sentence, a tab, and 0 or 1"
    hub = "SetFit/sst2"

    def parsed(self, line: str) -> tuple[str, int] | None:
        """See :class:`~kattn_cli.data.sets.sentences.lines.LineSet`."""
        text, _, label = line.rpartition("\t")
        return (text, int(label)) if label in ("0", "1") else None

    def line(self, text: str, label: int) -> str:
        """See :class:`~kattn_cli.data.sets.sentences.lines.LineSet`."""
        return f"{text}\t{label}"
