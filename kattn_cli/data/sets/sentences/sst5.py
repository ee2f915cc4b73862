"""SST-5: sentences of film reviews, from very negative to very positive (Socher et al., 2013)."""

from __future__ import annotations

import re

from kattn_cli.data.sets.sentences.lines import LineSet

_LINE = re.compile(r"__label__([1-5])\s+(\S.*)")


class Sst5(LineSet):
    """8,544 sentences to train on, 1,101 to choose by, 2,210 to test on; ``root`` holds ``{train,dev,test}.txt``.

    A line is as fastText's: ``__label__1`` (very negative) to ``__label__5``, then the sentence. Classes are 0 … 4.
    """

    name = "sst5"
    description = "11,855 sentences of film reviews, from very negative to very positive"
    how_to_get = (
        "kattn data fetch sst5 downloads SetFit/sst5 from the Hugging Face hub, and so does download: true; or give a "
        "folder with train.txt, dev.txt and test.txt as root: __label__1 to __label__5 and a sentence a line"
    )
    classes = 5
    file_names = {"train": "train.txt", "validation": "dev.txt", "test": "test.txt"}  # noqa: RUF012
    form = "__label__1 to __label__5, then a sentence"
    hub = "SetFit/sst5"

    def parsed(self, line: str) -> tuple[str, int] | None:
        """See :class:`~kattn_cli.data.sets.sentences.lines.LineSet`."""
        match = _LINE.fullmatch(line)
        return (match[2], int(match[1]) - 1) if match else None

    def line(self, text: str, label: int) -> str:
        """See :class:`~kattn_cli.data.sets.sentences.lines.LineSet`."""
        return f"__label__{label + 1} {text}"
