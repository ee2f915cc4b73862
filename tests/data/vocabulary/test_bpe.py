"""BPE against the library at once, trained twice, from a tokenizer.json, and GPT-2's by tiktoken's files."""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
from tokenizers import Tokenizer, models, pre_tokenizers

from kattn_cli.data.vocabulary import bpe, read_vocabulary
from kattn_cli.data.vocabulary.bpe import Bpe
from kattn_cli.data.vocabulary.gpt2 import gpt2
from kattn_cli.errors import DataError

TEXT = "the cat  sat on the mat,\n\n\n the cat's hat \t\n = Title = \n \n" * 20


def test_parts_encode_as_the_library_does_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bpe, "_PART", 10)
    vocabulary = Bpe.build([TEXT], size=280)
    assert vocabulary.size == 280
    whole = Tokenizer.from_str(vocabulary.tokenizer).encode(TEXT).ids
    assert vocabulary.encode(TEXT).tolist() == whole
    assert vocabulary.encode(TEXT).dtype == np.uint16
    assert len(whole) < len(TEXT) / 2


def test_training_is_the_same_every_time_and_stops_where_nothing_is_left_to_merge() -> None:
    assert Bpe.build([TEXT], size=270) == Bpe.build([TEXT], size=270)
    assert Bpe.build(["ab"], size=300).size == 257
    assert Bpe.build([TEXT], size=256).encode("é").tolist() != []


def test_a_tokenizer_json_keeps_its_special_tokens(tmp_path: Path) -> None:
    tokenizer = Tokenizer.from_str(Bpe.build([TEXT], size=270).tokenizer)
    tokenizer.add_special_tokens(["<|end|>"])
    tokenizer.enable_truncation(3)
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    vocabulary = read_vocabulary(str(tmp_path / "tokenizer.json"))
    assert vocabulary.size == 271
    assert vocabulary.encode("the cat<|end|>").tolist()[-1] == 270
    assert vocabulary.decode(vocabulary.encode(TEXT + "<|end|>")) == TEXT + "<|end|>"


def test_a_tokenizer_that_loses_something_is_refused(tmp_path: Path) -> None:
    tokenizer = Tokenizer(models.WordLevel({"a": 0, "?": 1}, unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    with pytest.raises(DataError, match=r"does not give a text back as it was; take a byte-level BPE"):
        read_vocabulary(str(tmp_path / "tokenizer.json"))


def tiktoken(monkeypatch: pytest.MonkeyPatch, files: dict[str, bytes]) -> None:
    """In place of the real one, with ``files`` by their names."""

    def read_file_cached(url: str, expected_hash: str) -> bytes:
        assert len(bytes.fromhex(expected_hash)) == hashlib.sha256().digest_size
        try:
            return files[url.rpartition("/")[2]]
        except KeyError:
            raise ConnectionError("no network\nno stack of lines") from None

    package, load = ModuleType("tiktoken"), ModuleType("tiktoken.load")
    load.read_file_cached = read_file_cached  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tiktoken", package)
    monkeypatch.setitem(sys.modules, "tiktoken.load", load)


def test_gpt2_is_made_of_tiktokens_files(monkeypatch: pytest.MonkeyPatch) -> None:
    tokens = [*sorted(pre_tokenizers.ByteLevel.alphabet()), "Ġa", "Ġab", "<|endoftext|>"]
    merges = b"#version: 0.2\n\xc4\xa0 a\n\xc4\xa0a b\n"
    encoder = json.dumps({token: number for number, token in enumerate(tokens)}).encode()
    tiktoken(monkeypatch, {"encoder.json": encoder, "vocab.bpe": merges})
    vocabulary = read_vocabulary("gpt2")
    assert vocabulary.size == 259
    assert vocabulary.encode("b ab<|endoftext|> a").tolist() == [tokens.index("b"), 257, 258, 256]


def test_gpt2_that_cannot_be_had_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    tiktoken(monkeypatch, {})
    with pytest.raises(DataError) as error:
        gpt2()
    assert str(error.value) == "gpt2: cannot be downloaded: no network; give a tokenizer.json of GPT-2's instead"
    monkeypatch.setitem(sys.modules, "tiktoken.load", None)
    with pytest.raises(DataError, match=r"gpt2: needs tiktoken: pip install tiktoken; or give a tokenizer.json"):
        gpt2()
