"""Text of the user's own: plain files in UTF-8."""

from __future__ import annotations

from itertools import chain
from math import isclose
from pathlib import Path
from typing import Annotated

from pydantic import Field

from kattn_cli.data.corpora.corpus import Context, Count, Kind, Size, TextCorpus
from kattn_cli.data.corpora.source import Source, cut, files_at, missing_files, source_at
from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.errors import DataError

SHARES = (0.9, 0.05, 0.05)
HELD_OUT = 0.1
"""The share of the training text, its end, that the best epoch is chosen by where there is no text for that."""

Share = Annotated[float, Field(gt=0, lt=1)]


class Text(TextCorpus):
    """Plain text; files are given as a file, a folder (all ``.txt`` in it) or a pattern with ``*``.

    Args:
        train: the text to train on.
        validation_file: the text to choose the best epoch by; by default the last tenth of ``train`` in its order,
            which is then not trained on.
        test: the text to report on.
        path: in place of these three, one text that is cut in order, each part ending with a line.
        shares: of ``path``, those of training, validation and test; by default 0.9, 0.05 and 0.05.
        vocabulary: see :class:`~kattn_cli.data.corpora.corpus.TextCorpus`, and so for the rest.
    """

    name = "text"
    description = "text of your own, plain files in UTF-8"
    how_to_get = "give data.train and data.test, or data.path, one text that is cut into all splits"
    path_options = ("train", "validation_file", "test", "path", "vocabulary_from")

    def __init__(
        self,
        *,
        train: str | None = None,
        validation_file: str | None = None,
        test: str | None = None,
        path: str | None = None,
        shares: Annotated[list[Share], Field(min_length=3, max_length=3)] | None = None,
        vocabulary: Kind = "characters",
        vocabulary_size: Size | None = None,
        min_count: Count = 1,
        vocabulary_from: str | None = None,
        context: Context = 128,
    ) -> None:
        super().__init__(
            vocabulary=vocabulary,
            vocabulary_size=vocabulary_size,
            min_count=min_count,
            vocabulary_from=vocabulary_from,
            context=context,
        )
        given = {"train": train, "validation_file": validation_file, "test": test}
        self.given = {key: value for key, value in given.items() if value is not None}
        self.path = path
        self.shares = shares or list(SHARES)
        if path and self.given:
            raise ValueError(f"data.path: is cut into all splits; leave out {', '.join(self.given)}, or this")
        if shares and not path:
            raise ValueError("data.shares: are those of data.path, which is not given")
        if not isclose(sum(self.shares), 1):
            raise ValueError(f"data.shares: add up to {sum(self.shares):g}, not to 1")

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if self.path is None:
            for key, what in (("train", "text to train on"), ("test", "text to report on")):
                if key not in self.given:
                    return f"data.{key}: is missing; give a {what}, or data.path, one text that is cut into all splits"
        for key, value in self._files().items():
            if missing := missing_files(value):
                return f"data.{key}: {missing}"
        return self.missing_vocabulary()

    def sources(self) -> dict[SplitName, Source]:
        """See :class:`~kattn_cli.data.corpora.corpus.TextCorpus`."""
        whole = {key: self._source(key, value) for key, value in self._files().items()}
        if "path" in whole:
            train, validation, test = cut(whole["path"], self.shares)
        elif "validation_file" in whole:
            train, validation, test = whole["train"], whole["validation_file"], whole["test"]
        else:
            train, validation = cut(whole["train"], (1 - HELD_OUT, HELD_OUT))
            test = whole["test"]
        return {"train": train, "validation": validation, "test": test}

    def places(self) -> list[Path]:
        """Return the folders that the files lie in."""
        return sorted({file.parent for file in chain.from_iterable(map(files_at, self._files().values()))})

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        checks = []
        for key, value in self._files().items():
            found = [FileCheck(file, "no checksum known", key) for file in files_at(value)]
            checks += found or [FileCheck(Path(value).expanduser(), "missing", key)]
        return checks

    def fetch(self) -> None:
        """See :class:`~kattn_cli.data.dataset.DataSet`: there is nothing to fetch."""
        raise DataError(f"{self.name}: this is text of your own, which cannot be fetched; {self.how_to_get}")

    def _files(self) -> dict[str, str]:
        return {"path": self.path} if self.path else self.given

    def _source(self, key: str, value: str) -> Source:
        try:
            return source_at(value)
        except DataError as error:
            raise DataError(f"{self.name}: data.{key}: {error}") from None
