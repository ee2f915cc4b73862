"""What every vocabulary is to the rest of kattn."""

from __future__ import annotations

from collections.abc import Iterable
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
        """The tokens of ``text``, ``(T,)``, of the smallest unsigned type that holds them all."""

    def decode(self, tokens: np.ndarray) -> str:
        """The text of ``tokens`` ``(T,)``."""

    def to_json(self) -> dict[str, Any]:
        """All that :func:`~kattn_cli.data.vocabulary.vocabulary_from` needs to make it again."""


class VocabularyKind(Vocabulary, Protocol):
    """A vocabulary that can be made from a training text, and from what :meth:`to_json` gave."""

    kind: ClassVar[str]
    """Its name in a recipe, and under ``kind`` in :meth:`to_json`."""

    options: ClassVar[tuple[str, ...]]
    """Which of ``size`` and ``min_count`` it heeds."""

    @classmethod
    def build(cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1) -> Self:
        """The vocabulary of a training text.

        Args:
            texts: the text, in pieces cut where :mod:`~kattn_cli.data.vocabulary.cuts` would.
            size: at most so many tokens.
            min_count: of how many occurrences on something has a token of its own.

        Raises:
            ValueError: if no vocabulary of that size can be.
        """

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Self:
        """The one that gave ``value``.

        Raises:
            KeyError, TypeError, ValueError: if none gave it.
        """


def smallest_type(size: int) -> np.dtype:
    """The smallest unsigned type that holds ``0 … size - 1``."""
    return np.min_scalar_type(max(size - 1, 0))
