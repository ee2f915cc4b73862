"""The base class of corpora of text files: their vocabulary, and their splits as tokens on disk."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kattn_cli.data.corpora.source import Source, chunks
from kattn_cli.data.corpora.tokens import encode_source, vocabulary_of
from kattn_cli.data.dataset import Corpus
from kattn_cli.data.images import SplitName
from kattn_cli.data.text import TextSplits
from kattn_cli.data.vocabulary import Vocabulary, missing_vocabulary, read_vocabulary, vocabulary_options
from kattn_cli.errors import DataError

Kind = Literal["bytes", "characters", "words", "bpe"]
Size = Annotated[int, Field(ge=3, le=1 << 24)]
Count = Annotated[int, Field(ge=1)]
Context = Annotated[int, Field(ge=1, le=1 << 20)]


class TextCorpus(Corpus):
    """A corpus of text files.

    Args:
        vocabulary: the kind of tokens; those of words and BPE are learnt from the training text.
        vocabulary_size: at most so many tokens, of words (by default all there are) or BPE (by default 8,192).
        min_count: of how many occurrences on a word has a token of its own.
        vocabulary_from: instead, a run's folder, a ``vocabulary.json``, a ``tokenizer.json``, or ``gpt2``.
        context: how many tokens a model sees at most.
    """

    name: ClassVar[str]
    path_options: ClassVar[tuple[str, ...]] = ("root", "vocabulary_from")
    download: bool = False
    """Whether :meth:`load` fetches what is missing."""

    def __init__(
        self,
        *,
        vocabulary: Kind,
        vocabulary_size: int | None,
        min_count: int,
        vocabulary_from: str | None,
        context: int,
    ) -> None:
        self.kind = vocabulary
        self.vocabulary_from = vocabulary_from
        self.context = context
        self.vocabulary_options = vocabulary_options(vocabulary, vocabulary_size, min_count, vocabulary_from)

    @abstractmethod
    def sources(self) -> dict[SplitName, Source]:
        """Return where the text of each split lies, of those splits that are there.

        Raises:
            DataError: if a file cannot be read.
        """

    def text(self, split: SplitName) -> Iterator[str]:
        """Yield the text of a split in pieces, cut as :func:`~kattn_cli.data.vocabulary.vocabulary.parts` does.

        Raises:
            DataError: if it is not there, cannot be read, or is not UTF-8.
        """
        sources = self.sources()
        if split not in sources:
            raise DataError(f"{self.name}: has no {split} split here, only {', '.join(sources) or 'none'}")
        return chunks(sources[split])

    def load(self) -> TextSplits:
        """See :class:`~kattn_cli.data.dataset.Corpus`; tokens are made once, see :mod:`.tokens`."""
        if self.download and self.missing():
            self.fetch()
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        sources = self.sources()
        for split, source in sources.items():
            if not source:
                raise DataError(f"{self.name}: the {split} split has no text; give more, or larger shares")
        vocabulary = self._vocabulary(sources["train"])
        return vocabulary, {
            name: encode_source(source, vocabulary).split(self.context, f"{self.name}: the {name} split")
            for name, source in sources.items()
        }

    def missing_vocabulary(self) -> str:
        """Return what ``vocabulary_from`` lacks, in one line; empty if it is there or not given."""
        missing = missing_vocabulary(self.vocabulary_from) if self.vocabulary_from else ""
        return f"data.vocabulary_from: {missing}" if missing else ""

    def _vocabulary(self, train: Source) -> Vocabulary:
        if self.vocabulary_from:
            try:
                return read_vocabulary(self.vocabulary_from)
            except DataError as error:
                raise DataError(f"{self.name}: data.vocabulary_from: {error}") from None
        try:
            return vocabulary_of(train, self.kind, self.vocabulary_options)
        except ValueError as error:
            raise DataError(f"{self.name}: data.vocabulary_size: {error}") from None
