"""Words as tokens, as WikiText and Penn Treebank mean them: cut at whitespace, each line with an end of its own."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kattn_cli.data.vocabulary.vocabulary import smallest_type

UNKNOWN = "<unk>"
LINE_END = "<eos>"


@dataclass(frozen=True)
class Words:
    """``words``: ``<unk>``, ``<eos>``, then those of the training text, the most frequent first.

    Every line end is ``<eos>``; a text without one at its end has no ``<eos>`` there, so that a prompt may go on.
    Other whitespace only parts words. ``<unk>`` and ``<eos>`` in a text are those tokens.
    """

    kind: ClassVar[str] = "words"
    options: ClassVar[tuple[str, ...]] = ("size", "min_count")
    words: tuple[str, ...]

    def __post_init__(self) -> None:
        if self.words[:2] != (UNKNOWN, LINE_END) or len(set(self.words)) != len(self.words):
            raise ValueError(f"its words must be distinct, and the first {UNKNOWN} and {LINE_END}")

    @classmethod
    def build(cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1) -> Words:
        """Return the ``size - 2`` most frequent of the words that ``texts`` has ``min_count`` times or more.

        Words as frequent as each other stand in the order of their characters.
        """
        if size is not None and size < 3:
            raise ValueError(f"a vocabulary of words needs a size of 3 or more ({UNKNOWN}, {LINE_END} and a word)")
        counts: Counter[str] = Counter()
        for text in texts:
            counts.update(text.split())
        del counts[UNKNOWN], counts[LINE_END]
        frequent = sorted((-count, word) for word, count in counts.items() if count >= min_count)
        return cls((UNKNOWN, LINE_END, *(word for _, word in frequent[: size and size - 2])))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Words:
        """See :class:`~kattn_cli.data.vocabulary.vocabulary.VocabularyKind`."""
        words = tuple(value["words"])
        if not all(isinstance(word, str) for word in words):
            raise TypeError("its words must be texts")
        return cls(words)

    @property
    def size(self) -> int:
        """The number of words, with ``<unk>`` and ``<eos>``."""
        return len(self.words)

    @property
    def unknown(self) -> int:
        """``<unk>``."""
        return 0

    def encode(self, text: str) -> np.ndarray:
        """Return tokens ``(T,)``, one for each word and line end."""
        words = text.replace("\n", f" {LINE_END} ").split()
        numbers = self._numbers
        return np.fromiter((numbers.get(word, 0) for word in words), smallest_type(self.size), len(words))

    def decode(self, tokens: np.ndarray) -> str:
        """Return the words of ``tokens`` ``(T,)``, joined with spaces, and a line end for each ``<eos>``."""
        words = ("\n" if token == 1 else self.words[token] for token in tokens.tolist())
        return re.sub(" ?\n ?", "\n", " ".join(words))

    def to_json(self) -> dict[str, Any]:
        """See :class:`~kattn_cli.data.vocabulary.vocabulary.Vocabulary`."""
        return {"kind": self.kind, "words": list(self.words)}

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return {word: number for number, word in enumerate(self.words)}
