"""Characters (Unicode code points) as tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from kattn_cli.data.vocabulary.vocabulary import smallest_type

UNKNOWN = "\ufffd"
_CODE_POINTS = 0x110000


@dataclass(frozen=True)
class Characters:
    """``characters``: those of the training text, sorted; the token after the last stands for any other."""

    kind: ClassVar[str] = "characters"
    options: ClassVar[tuple[str, ...]] = ()
    characters: str

    def __post_init__(self) -> None:
        if UNKNOWN in self.characters or len(set(self.characters)) != len(self.characters):
            raise ValueError("its characters must be distinct, and none of them U+FFFD")

    @classmethod
    def build(cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1) -> Characters:
        """Return the vocabulary of every character there is in ``texts``."""
        found: set[str] = set()
        for text in texts:
            found.update(text)
        return cls("".join(sorted(found - {UNKNOWN})))

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Characters:
        """See :class:`~kattn_cli.data.vocabulary.vocabulary.VocabularyKind`."""
        if not isinstance(value["characters"], str):
            raise TypeError("its characters must be one text")
        return cls(value["characters"])

    @property
    def size(self) -> int:
        """The number of characters plus one, the unknown."""
        return len(self.characters) + 1

    @property
    def unknown(self) -> int:
        """The last token."""
        return len(self.characters)

    def encode(self, text: str) -> np.ndarray:
        """Return tokens ``(T,)``, one for each character."""
        return self._tokens[_code_points(text)]

    def decode(self, tokens: np.ndarray) -> str:
        """Return the characters of ``tokens`` ``(T,)``; the unknown is U+FFFD."""
        return _code_points(self.characters + UNKNOWN)[tokens].tobytes().decode("utf-32-le", errors="surrogatepass")

    def to_json(self) -> dict[str, Any]:
        """See :class:`~kattn_cli.data.vocabulary.vocabulary.Vocabulary`."""
        return {"kind": self.kind, "characters": self.characters}

    @cached_property
    def _tokens(self) -> np.ndarray:
        """The token of each code point there can be."""
        tokens = np.full(_CODE_POINTS, self.unknown, dtype=smallest_type(self.size))
        tokens[_code_points(self.characters)] = np.arange(len(self.characters))
        return tokens


def _code_points(text: str) -> np.ndarray:
    return np.frombuffer(text.encode("utf-32-le", errors="surrogatepass"), dtype="<u4")
