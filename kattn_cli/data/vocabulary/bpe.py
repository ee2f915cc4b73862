"""Byte-level byte-pair encoding, as GPT-2's (Radford et al., 2019), by the library ``tokenizers``."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

from kattn_cli.data.vocabulary.vocabulary import parts, smallest_type

DEFAULT_SIZE = 8192
_PART = 8192
_PROBE = "Ünï  café\n\n\t😀 naïve\u00a0end.\r\n "


@dataclass(frozen=True)
class Bpe:
    """Byte-pair encoding; ``tokenizer``: the library's, as the text of a ``tokenizer.json``.

    Raises:
        ValueError: if it is none, or does not give every text back as it was, as byte-level ones do.
    """

    kind: ClassVar[str] = "bpe"
    options: ClassVar[tuple[str, ...]] = ("size",)
    unknown: ClassVar[None] = None
    tokenizer: str

    def __post_init__(self) -> None:
        if self.decode(self.encode(_PROBE)) != _PROBE:
            raise ValueError("it does not give a text back as it was; take a byte-level BPE, as GPT-2's is")

    @classmethod
    def build(cls, texts: Iterable[str], *, size: int | None = None, min_count: int = 1) -> Bpe:
        """Train on ``texts``; of ``size`` tokens, by default 8,192, or fewer where nothing is left to merge."""
        size = DEFAULT_SIZE if size is None else size
        if size < 256:
            raise ValueError("a BPE needs a size of 256 or more, one token for each byte")
        tokenizer = byte_level(models.BPE())
        alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
        trainer = trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=alphabet, special_tokens=[], show_progress=False
        )
        tokenizer.train_from_iterator((part for text in texts for part in parts(text, _PART)), trainer)
        return cls(tokenizer.to_str())

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Bpe:
        """Return the vocabulary that :meth:`to_json` gave, or of a ``tokenizer.json`` under the key ``tokenizer``."""
        try:
            tokenizer = Tokenizer.from_str(json.dumps(value["tokenizer"]))
            tokenizer.no_truncation()
            tokenizer.no_padding()
            return cls(tokenizer.to_str())
        except (KeyError, ValueError):
            raise
        except Exception as error:  # the library raises nothing narrower
            raise ValueError(f"it is no tokenizer: {error}") from None

    @cached_property
    def size(self) -> int:
        """The last token plus one; tokens that were added to the merged ones count."""
        return max(self._tokenizer.get_vocab(with_added_tokens=True).values()) + 1

    def encode(self, text: str) -> np.ndarray:
        """Return tokens ``(T,)``; a lone surrogate, which UTF-8 has not, is a question mark."""
        sound = text.encode("utf-8", errors="replace").decode()
        found = self._tokenizer.encode_batch_fast(list(parts(sound, _PART)), add_special_tokens=False)
        dtype = smallest_type(self.size)
        return np.concatenate([np.empty(0, dtype), *(np.array(part.ids, dtype) for part in found)])

    def decode(self, tokens: np.ndarray) -> str:
        """Return the text of ``tokens`` ``(T,)``; bytes that are no UTF-8 are shown as U+FFFD."""
        return self._tokenizer.decode(tokens.tolist(), skip_special_tokens=False)

    def to_json(self) -> dict[str, Any]:
        """See :class:`~kattn_cli.data.vocabulary.vocabulary.Vocabulary`."""
        return {"kind": self.kind, "tokenizer": json.loads(self.tokenizer)}

    @cached_property
    def _tokenizer(self) -> Tokenizer:
        return Tokenizer.from_str(self.tokenizer)


def byte_level(model: models.BPE) -> Tokenizer:
    """Return a tokenizer of ``model`` that cuts words as GPT-2's does."""
    tokenizer = Tokenizer(model)
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer
