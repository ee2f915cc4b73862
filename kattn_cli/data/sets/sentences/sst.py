"""SST-2 and SST-5: sentences of film reviews with a class each, a line a sentence (Socher et al., 2013)."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.sets.sentences.sentence_set import Labelled, SentenceSet, from_hub, text_of
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing


class LineSet(SentenceSet):
    """A data set with one line for a sentence and its class, as :meth:`parsed` reads and :meth:`line` writes it."""

    splits = ("train", "validation", "test")
    file_names: ClassVar[dict[SplitName, str]]
    """The file of each split, below ``root``."""

    form: ClassVar[str]
    """What a line looks like, for messages."""

    hub: ClassVar[str]
    """The name of the same sentences on the Hugging Face hub."""

    @abstractmethod
    def parsed(self, line: str) -> tuple[str, int] | None:
        """Return sentence and class of a line, or None if it is of another form."""

    @abstractmethod
    def line(self, text: str, label: int) -> str:
        """Return the line that :meth:`parsed` takes apart."""

    def read(self, split: SplitName) -> Labelled:
        """See :class:`~kattn_cli.data.sets.sentences.sentence_set.SentenceSet`."""
        path = self.root / self.file_names[split]
        texts, labels = zip(*self._parsed(path), strict=True)
        return Labelled(list(texts), list(labels))

    def _parsed(self, path: Path) -> Iterator[tuple[str, int]]:
        for number, line in enumerate(text_of(path).removesuffix("\n").split("\n"), 1):
            found = self.parsed(line.rstrip("\r"))
            if found is None or not found[0].strip():
                raise DataError(f"{path}, line {number}: expected {self.form}")
            yield found

    def missing_files(self) -> str:
        """See :class:`~kattn_cli.data.sets.sentences.sentence_set.SentenceSet`."""
        path = next((check.path for check in self.files() if check.status == "missing"), None)
        return f"there is no file {path}; {self.how_to_get}" if path else ""

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        paths = [self.root / name for name in self.file_names.values()]
        return [FileCheck(path, "no checksum known" if path.is_file() else "missing") for path in paths]

    def fetch(self) -> None:
        """Let ``datasets`` download it from the hub, and write its files into ``root``."""
        for split, name in self.file_names.items():
            found = from_hub(self.name, self.hub, split)
            path = self.root / name
            with faults_as(DataError, path), replacing(path) as new:
                lines = (self.line(" ".join(text.split()), label) for text, label in zip(*found, strict=True))
                new.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")


class Sst2(LineSet):
    """SST-2: 6,920 sentences to train on, 872 to choose by, 1,821 to test on; files ``{train,dev,test}.tsv``.

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
        """See :class:`~kattn_cli.data.sets.sentences.sst.LineSet`."""
        text, _, label = line.rpartition("\t")
        return (text, int(label)) if label in ("0", "1") else None

    def line(self, text: str, label: int) -> str:
        """See :class:`~kattn_cli.data.sets.sentences.sst.LineSet`."""
        return f"{text}\t{label}"


_LINE = re.compile(r"__label__([1-5])\s+(\S.*)")


class Sst5(LineSet):
    """SST-5: 8,544 sentences to train on, 1,101 to choose by, 2,210 to test on; files ``{train,dev,test}.txt``.

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
        """See :class:`~kattn_cli.data.sets.sentences.sst.LineSet`."""
        match = _LINE.fullmatch(line)
        return (match[2], int(match[1]) - 1) if match else None

    def line(self, text: str, label: int) -> str:
        """See :class:`~kattn_cli.data.sets.sentences.sst.LineSet`."""
        return f"__label__{label + 1} {text}"
