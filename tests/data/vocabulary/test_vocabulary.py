"""Each vocabulary by hand, and what they have in common."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from kattn_cli.data.vocabulary import VOCABULARIES, build_vocabulary, read_vocabulary, vocabulary_from
from kattn_cli.data.vocabulary.bytes import Bytes
from kattn_cli.data.vocabulary.characters import Characters
from kattn_cli.data.vocabulary.words import Words
from kattn_cli.errors import DataError

ODD = "Ünï  café\n\n\t😀 naïve\u00a0end .\r\n\u2028x\x00 <unk> \n"


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_what_json_keeps_is_an_equal_vocabulary(kind: str) -> None:
    vocabulary = build_vocabulary(kind, {}, [ODD, "and more"])
    again = vocabulary_from(json.loads(json.dumps(vocabulary.to_json())))
    assert again == vocabulary
    assert again.size == vocabulary.size
    tokens = vocabulary.encode(ODD)
    assert tokens.dtype == again.encode(ODD).dtype == np.min_scalar_type(vocabulary.size - 1)
    assert tokens.tolist() == again.encode(ODD).tolist()
    assert max(tokens.tolist()) < vocabulary.size
    assert again.decode(tokens) == vocabulary.decode(tokens)
    assert vocabulary.encode(vocabulary.decode(tokens)).tolist() == tokens.tolist()


@pytest.mark.parametrize("kind", ["bytes", "characters", "bpe"])
def test_these_give_a_text_back_as_it_was(kind: str) -> None:
    vocabulary = build_vocabulary(kind, {}, [ODD])
    assert vocabulary.decode(vocabulary.encode(ODD)) == ODD


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_no_text_has_no_tokens_and_a_lone_surrogate_is_no_crash(kind: str) -> None:
    vocabulary = build_vocabulary(kind, {}, ["a b"])
    assert vocabulary.encode("").shape == (0,)
    assert vocabulary.decode(vocabulary.encode("")) == ""
    assert len(vocabulary.encode("\udc80")) == 1


def test_bytes_are_those_of_utf_8() -> None:
    assert Bytes().encode("aé").tolist() == [97, 0xC3, 0xA9]
    assert Bytes().decode(np.array([97, 0xC3])) == "a\ufffd"


def test_characters_are_sorted_and_the_unknown_comes_last() -> None:
    vocabulary = build_vocabulary("characters", {}, ["ba\n", "é\ufffd"])
    assert vocabulary == Characters("\nabé")
    assert vocabulary.encode("abzé\ufffd").tolist() == [1, 2, 4, 3, 4]
    assert vocabulary.size == 5
    assert vocabulary.unknown == 4
    assert vocabulary.decode(np.array([1, 4, 0], np.uint8)) == "a\ufffd\n"


def test_words_are_counted_as_by_hand() -> None:
    texts = [" the cat \n the <unk> dog \n\n", "a dog the\n"]
    assert build_vocabulary("words", {}, texts) == Words(("<unk>", "<eos>", "the", "dog", "a", "cat"))
    twice = build_vocabulary("words", {"min_count": 2}, texts)
    assert twice == Words(("<unk>", "<eos>", "the", "dog"))
    assert build_vocabulary("words", {"size": 3}, texts) == Words(("<unk>", "<eos>", "the"))
    assert twice.encode(" the cat \n\n <unk> dog").tolist() == [2, 0, 1, 1, 0, 3]
    assert twice.decode(np.array([2, 0, 1, 1, 0, 3])) == "the <unk>\n\n<unk> dog"
    assert twice.encode("the <eos> dog\n").tolist() == [2, 1, 3, 1]


def test_options_that_a_kind_does_not_have_and_sizes_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="a vocabulary of bytes takes no size"):
        build_vocabulary("bytes", {"size": 10}, [])
    with pytest.raises(ValueError, match="needs a size of 3 or more"):
        build_vocabulary("words", {"size": 2}, [])
    with pytest.raises(ValueError, match="a BPE needs a size of 256 or more"):
        build_vocabulary("bpe", {"size": 255}, [])


def test_it_is_read_from_a_run_or_a_file(tmp_path: Path) -> None:
    vocabulary = Characters("ab")
    (tmp_path / "vocabulary.json").write_text(json.dumps(vocabulary.to_json()), encoding="utf-8")
    assert read_vocabulary(str(tmp_path)) == vocabulary
    assert read_vocabulary(str(tmp_path / "vocabulary.json")) == vocabulary


@pytest.mark.parametrize(
    ("content", "fault"),
    [
        ('{"kind": "wrods"}', 'has a kind wrods; expected one of bytes, characters, words, bpe; did you mean "words"?'),
        ('{"kind": "words"}', "is no vocabulary of words: it has no words"),
        ('{"kind": "words", "words": ["a", "a"]}', "its words must be distinct, and the first <unk> and <eos>"),
        ('{"kind": "characters", "characters": "aa"}', "its characters must be distinct"),
        ('{"kind": "characters", "characters": 3}', "is no vocabulary of characters"),
        ('{"kind": "bpe", "tokenizer": 3}', "is no vocabulary of bpe: it is no tokenizer"),
        ("[1, 2]", "is neither a vocabulary.json nor a tokenizer.json"),
        ('{"kind": ', "is no JSON, or was cut short"),
        pytest.param("[" * 100_000, "is no JSON, or was cut short", id="deep"),
        ('{"kind": "characters", "characters": ["ab", "c"]}', "its characters must be one text"),
        ('{"kind": "words", "words": ["<unk>", "<eos>", 1]}', "its words must be texts"),
    ],
)
def test_what_is_no_vocabulary_is_named(content: str, fault: str, tmp_path: Path) -> None:
    file = tmp_path / "v.json"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(DataError) as error:
        read_vocabulary(str(file))
    assert fault in str(error.value)
    assert str(error.value).startswith(f"{file}: ")
    assert "\n" not in str(error.value)


def test_what_is_not_there_is_named(tmp_path: Path) -> None:
    give = "give a run's folder, a vocabulary.json, a tokenizer.json, or gpt2"
    with pytest.raises(DataError) as error:
        read_vocabulary(str(tmp_path / "no"))
    assert str(error.value) == f"{tmp_path / 'no'}: does not exist; {give}"
    with pytest.raises(DataError) as error:
        read_vocabulary(str(tmp_path))
    assert str(error.value) == f"{tmp_path}: has no vocabulary.json; {give}"
