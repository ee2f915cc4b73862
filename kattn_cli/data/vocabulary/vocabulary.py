"""The interface of vocabularies: text to tokens and back.

A text can be cut so that the tokens of its parts are those of the whole: between something and a space that follows
it, which is then the first of the next part, and after a single line end between two words. No word is cut there, nor
what the patterns of byte-level BPEs (GPT-2's, and its later ones') take as one: none has a space but at its beginning,
nor goes on after a line end with other than whitespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Protocol

import numpy as np
from typing_extensions import Self


class Vocabulary(Protocol):
    """Text to tokens and back; tokens are ``0 … size - 1``."""

    @property
    def size(self) -> int:
        """How many tokens there are."""

    @property
    def unknown(self) -> int | None:
        """The token of whatever has none of its own; None where everything has."""

    def encode(self, text: str) -> np.ndarray:
        """Return the tokens of ``text``, ``(T,)``, of the smallest unsigned type that holds them all."""

    def decode(self, tokens: np.ndarray) -> str:
        """Return the text of ``tokens`` ``(T,)``."""

    def to_json(self) -> dict[str, Any]:
        """Return all that :func:`~kattn_cli.data.vocabulary.vocabulary_from` needs to make it again."""


class VocabularyKind(Vocabulary, Protocol):
    """A vocabulary that can be made from a training text, and from what :meth:`to_json` gave."""

    kind: ClassVar[str]
    """Its name in a recipe, and under ``kind`` in :meth:`to_json`."""

    options: ClassVar[tuple[str, ...]]
    """Which of ``size`` and ``min_count`` it heeds."""

    @classmethod
    def build(cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1) -> Self:
        """Return the vocabulary of a training text.

        Args:
            texts: the text, in pieces cut as :func:`~kattn_cli.data.vocabulary.vocabulary.parts` would.
            size: at most so many tokens.
            min_count: of how many occurrences on something has a token of its own.

        Raises:
            ValueError: if no vocabulary of that size can be.
        """

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """Return the vocabulary that gave ``value``.

        Raises:
            KeyError, TypeError, ValueError: if none gave it.
        """


def smallest_type(size: int) -> np.dtype:
    """Return the smallest unsigned type that holds ``0 … size - 1``."""
    return np.min_scalar_type(max(size - 1, 0))


_CUT = re.compile(r"(?<=\S) |(?<=\S\n)(?=\S)")
_STEP = 4096


def last_cut(text: str) -> int:
    """Return the last place where ``text`` can be cut, or 0 where it cannot be."""
    looked_at = _STEP
    while True:
        start = max(len(text) - looked_at, 0)
        places = [match.start() for match in _CUT.finditer(text, start)]
        if places or start == 0:
            return places[-1] if places else 0
        looked_at *= 4


def parts(text: str, length: int) -> Iterator[str]:
    """Yield ``text`` in parts of about ``length`` characters, longer where it cannot be cut."""
    start = 0
    while start < len(text):
        match = _CUT.search(text, start + length)
        stop = match.start() if match else len(text)
        yield text[start:stop]
        start = stop
