"""The base class of data sets of sentences: a vocabulary, and a length at which sentences are cut."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property
from pathlib import Path
from typing import Annotated, ClassVar, NamedTuple

import torch
from pydantic import Field

from kattn_cli.data.corpora.corpus import Count, Kind, Size
from kattn_cli.data.dataset import SequenceDataSet, SequenceFacts
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading import network
from kattn_cli.data.reading.parquet import first_line
from kattn_cli.data.reading.storage import default_root
from kattn_cli.data.sequences import SequenceSplit, padded
from kattn_cli.data.vocabulary import (
    Vocabulary,
    build_vocabulary,
    missing_vocabulary,
    read_vocabulary,
    vocabulary_options,
)
from kattn_cli.errors import DataError


class Labelled(NamedTuple):
    """Texts, and the class of each, from 0; named as the columns of the Hugging Face hub."""

    text: list[str]
    label: list[int]


def from_hub(name: str, hub: str, split: SplitName) -> Labelled:
    """Return the columns ``text`` and ``label`` of ``hub``, a name there.

    Raises:
        DataError: in one line, if they cannot be downloaded.
    """
    import datasets

    with network.hub() as silent:
        try:
            found = datasets.load_dataset(hub, split=split)
            return Labelled(list(found["text"]), list(found["label"]))
        except Exception as error:  # datasets raises nearly anything, its own and its readers'
            reason = silent or first_line(error)
            raise DataError(f"{name}: {hub} cannot be downloaded from the Hugging Face hub: {reason}") from None


def text_of(path: Path) -> str:
    """Return what a file holds.

    Raises:
        DataError: if it cannot be read, is not UTF-8, or is empty.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except UnicodeDecodeError as error:
        place = f"byte 0x{error.object[error.start]:02x} at offset {error.start:,}"
        raise DataError(f"{path}: is not UTF-8: {place}; convert it, for instance with iconv") from None
    if not text.strip():
        raise DataError(f"{path}: is empty")
    return text


class SentenceSet(SequenceDataSet):
    """Sentences as tokens of a vocabulary, which is built of the training sentences alone, or is another run's.

    Args:
        root: the folder of the files, by default ``$KATTN_DATA/<name>`` or ``~/.cache/kattn/<name>``.
        download: whether to fetch what is missing when it is needed.
        vocabulary: what a token is.
        vocabulary_size: at most so many words, or tokens of a BPE.
        min_count: of how many occurrences on a word has a token of its own.
        vocabulary_from: in place of these three, the vocabulary of a run (its folder), so that a language model can be
            fine-tuned; or a ``vocabulary.json``, a ``tokenizer.json``, or ``gpt2``.
        seq_len: tokens of a sentence; what is longer is cut off at the end, see :attr:`truncated`.

    Raises:
        ValueError: if the options of the vocabulary do not go together.
    """

    name: ClassVar[str]
    classes: ClassVar[int]
    splits: ClassVar[tuple[SplitName, ...]]
    path_options = ("root", "vocabulary_from")

    def __init__(
        self,
        *,
        root: str | None = None,
        download: bool = False,
        vocabulary: Kind = "words",
        vocabulary_size: Size | None = None,
        min_count: Count = 1,
        vocabulary_from: str | None = None,
        seq_len: Annotated[int, Field(ge=1, le=1 << 20)] = 64,
    ) -> None:
        self.root = Path(root).expanduser() if root else default_root(self.name)
        self.download, self.seq_len = download, seq_len
        self.kind, self.vocabulary_from = vocabulary, vocabulary_from
        self.options = vocabulary_options(vocabulary, vocabulary_size, min_count, vocabulary_from)
        self.truncated: dict[SplitName, int] = {}
        """How many sentences of each split were cut by :meth:`load`."""

    @abstractmethod
    def read(self, split: SplitName) -> Labelled:
        """Return the sentences of a split, whose files are there.

        Raises:
            DataError: if a file is empty, is not UTF-8, or has a sentence without a class, or a class without one.
        """

    @abstractmethod
    def missing_files(self) -> str:
        """Return what :meth:`missing` reports of the files."""

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if files := self.missing_files():
            return files
        lacking = missing_vocabulary(self.vocabulary_from) if self.vocabulary_from else ""
        return f"data.vocabulary_from: {lacking}" if lacking else ""

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root]

    def facts(self) -> SequenceFacts:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`; ``seq_len`` is where sentences are cut."""
        return SequenceFacts(
            classes=self.classes,
            seq_len=self.seq_len,
            vocabulary=self._vocabulary.size,
            own_validation="validation" in self.splits,
        )

    def vocabulary(self) -> Vocabulary:
        """Return the vocabulary of the tokens."""
        return self._vocabulary

    def load(self) -> dict[SplitName, SequenceSplit]:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`; uint8 where that holds the vocabulary, else int32.

        Raises:
            DataError: see :meth:`read`; also if files, or the vocabulary, are missing.
        """
        if self.download and self.missing_files():
            self.fetch()
        return {split: self._encoded(split) for split in self.splits}

    def _encoded(self, split: SplitName) -> SequenceSplit:
        sentences = self._training if split == "train" else self._read(split)
        dtype = "uint8" if self._vocabulary.size <= 256 else "int32"
        encoded = [self._vocabulary.encode(text) for text in sentences.text]
        self.truncated[split] = sum(len(tokens) > self.seq_len for tokens in encoded)
        cut = [torch.from_numpy(tokens[: self.seq_len].astype(dtype)) for tokens in encoded]
        return padded(cut, torch.tensor(sentences.label, dtype=torch.int64))

    @cached_property
    def _vocabulary(self) -> Vocabulary:
        if self.vocabulary_from:
            try:
                return read_vocabulary(self.vocabulary_from)
            except DataError as error:
                raise DataError(f"{self.name}: data.vocabulary_from: {error}") from None
        texts = [] if self.kind == "bytes" else self._training.text
        try:
            return build_vocabulary(self.kind, self.options, texts)
        except ValueError as error:
            raise DataError(f"{self.name}: data.vocabulary_size: {error}") from None

    @cached_property
    def _training(self) -> Labelled:
        return self._read("train")

    def _read(self, split: SplitName) -> Labelled:
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        return self.read(split)
