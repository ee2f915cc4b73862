"""The 256 bytes of UTF-8 as tokens."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np


@dataclass(frozen=True)
class Bytes:
    """Bytes as tokens: token ``b`` is the byte ``b``; what is no UTF-8 among generated ones is shown as ``\\ufffd``."""

    kind: ClassVar[str] = "bytes"
    options: ClassVar[tuple[str, ...]] = ()
    size: ClassVar[int] = 256
    unknown: ClassVar[None] = None

    @classmethod
    def build(cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1) -> Bytes:
        """Return the vocabulary, the same for every text, which is not read."""
        return cls()

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Bytes:
        """See :class:`~kattn_cli.data.vocabulary.vocabulary.VocabularyKind`."""
        return cls()

    def encode(self, text: str) -> np.ndarray:
        """Return tokens ``(T,)`` uint8; a lone surrogate, which UTF-8 has not, is a question mark."""
        return np.frombuffer(text.encode("utf-8", errors="replace"), dtype=np.uint8)

    def decode(self, tokens: np.ndarray) -> str:
        """Return the text of the bytes ``(T,)``."""
        return tokens.astype(np.uint8).tobytes().decode("utf-8", errors="replace")

    def to_json(self) -> dict[str, Any]:
        """Return its kind alone."""
        return {"kind": self.kind}
