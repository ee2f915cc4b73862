"""Sentences one a line, in one file a split."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import ClassVar

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.sets.sentences.labelled import Labelled, from_hub, text_of
from kattn_cli.data.sets.sentences.sentence_set import SentenceSet
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing


class LineSet(SentenceSet):
    """A line is a sentence and its class, as :meth:`parsed` reads and :meth:`line` writes it."""

    splits = ("train", "validation", "test")
    file_names: ClassVar[dict[SplitName, str]]
    """The file of each split, below ``root``."""

    form: ClassVar[str]
    """What a line looks like, for messages."""

    hub: ClassVar[str]
    """The name of the same sentences on the Hugging Face hub."""

    @abstractmethod
    def parsed(self, line: str) -> tuple[str, int] | None:
        """Sentence and class of a line, or None if it is of another form."""

    @abstractmethod
    def line(self, text: str, label: int) -> str:
        """The line that :meth:`parsed` takes apart."""

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
