"""Text of one's own: which text each split has, its tokens, and what is said of bad input."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kattn_cli.data.corpora import Text, encode_file, tokens
from kattn_cli.data.corpora.corpus import Kind
from kattn_cli.data.vocabulary.characters import Characters
from kattn_cli.data.vocabulary.words import Words
from kattn_cli.errors import DataError
from kattn_cli.recipe.options import with_defaults

LINES = "".join(f"line {i} é\n" for i in range(100))


@pytest.fixture(autouse=True)
def _caches_are_the_tests_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "kattn"))


def write(path: Path, text: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8", newline="")
    return str(path)


def test_one_text_is_cut_in_order_into_whole_lines(tmp_path: Path) -> None:
    corpus = Text(path=write(tmp_path / "a.txt", LINES), shares=[0.5, 0.3, 0.2], context=4)
    vocabulary, splits = corpus.load()
    texts = {name: vocabulary.decode(split.tokens) for name, split in splits.items()}
    assert "".join(texts.values()) == LINES
    assert list(texts) == ["train", "validation", "test"]
    total = len(LINES.encode())
    for text, split, share in zip(texts.values(), splits.values(), (0.5, 0.3, 0.2), strict=True):
        assert text.endswith("\n")
        assert split.bytes_ == len(text.encode()) == pytest.approx(share * total, abs=12)
    assert vocabulary == Characters("".join(sorted(set(texts["train"]))))


def test_windows_are_those_of_the_tokens_on_disk(tmp_path: Path) -> None:
    train = write(tmp_path / "train.txt", LINES)
    _, splits = Text(train=train, test=train, vocabulary="bytes", context=8).load()
    split = splits["test"]
    assert isinstance(split.tokens, np.memmap)
    assert split.tokens.tobytes() == LINES.encode()
    inputs, targets = split.take(torch.tensor([3]))
    assert inputs.tolist() == [list(LINES.encode()[24:32])]
    assert targets.tolist() == [list(LINES.encode()[25:33])]


def test_without_a_validation_file_the_end_of_the_training_text_is_held_out(tmp_path: Path) -> None:
    train, test = write(tmp_path / "train.txt", LINES), write(tmp_path / "test.txt", "line 5 ü\n")
    vocabulary, splits = Text(train=train, test=test, context=4).load()
    held_out = vocabulary.decode(splits["validation"].tokens)
    assert vocabulary.decode(splits["train"].tokens) + held_out == LINES
    assert len(held_out.encode()) == pytest.approx(len(LINES.encode()) / 10, abs=12)
    assert vocabulary.decode(splits["test"].tokens) == "line 5 \ufffd\n"
    of_its_own = Text(train=train, validation_file=test, test=test, context=4).load()[1]
    assert len(of_its_own["train"].tokens) == len(LINES)
    assert of_its_own["validation"].tokens.tolist() == of_its_own["test"].tokens.tolist()


@pytest.mark.parametrize("given", ["folder", "folder/*/*.txt"])
def test_many_files_are_one_text_in_the_order_of_their_names(given: str, tmp_path: Path) -> None:
    for name, text in (("b/2.txt", "two"), ("a/1.txt", "one "), ("a/3.md", "no")):
        write(tmp_path / "folder" / name, text)
    files = str(tmp_path / given)
    vocabulary, splits = Text(train=files, validation_file=files, test=files, vocabulary="words", context=1).load()
    assert vocabulary == Words(("<unk>", "<eos>", "one", "two"))
    assert splits["test"].tokens.tolist() == [2, 3]


def test_a_second_load_reads_no_text(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(tmp_path / "a.txt", LINES)
    options: dict[str, Any] = {"path": path, "shares": [0.5, 0.25, 0.25], "context": 4}
    kinds: tuple[Kind, ...] = ("characters", "words")
    before = {kind: Text(vocabulary=kind, **options).load() for kind in kinds}
    read = tokens.chunks

    def unread(source: object) -> None:
        raise AssertionError("read again")

    monkeypatch.setattr(tokens, "chunks", unread)
    for kind, (vocabulary, splits) in before.items():
        again, same = Text(vocabulary=kind, **options).load()
        assert again == vocabulary
        assert {name: split.tokens.tolist() for name, split in same.items()} == {
            name: split.tokens.tolist() for name, split in splits.items()
        }
    monkeypatch.setattr(tokens, "chunks", read)
    write(tmp_path / "a.txt", LINES.replace("line", "LINE"))
    assert "L" in Text(**options).load()[0].to_json()["characters"]


def test_tokens_that_were_cut_short_are_made_again(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", LINES)
    first = encode_file(path, Characters("eiln"), 4)
    (file,) = (tmp_path / "kattn" / "tokens").glob("*.bin")
    whole = file.read_bytes()
    file.write_bytes(whole[:50])
    again = encode_file(path, Characters("eiln"), 4)
    assert again.split.tokens.tobytes() == whole
    assert again.unknown == first.unknown == pytest.approx(1 - 4 * 100 / len(LINES))


def test_the_share_of_unknown_tokens_is_told(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", "a b <unk> c\na")
    assert encode_file(path, Words(("<unk>", "<eos>", "a")), 2).unknown == 3 / 6
    assert encode_file(path, Characters("abc"), 2).unknown == 9 / 13


def test_a_runs_vocabulary_is_taken(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", LINES)
    write(tmp_path / "run" / "vocabulary.json", json.dumps(Characters("elin").to_json()))
    corpus = Text(path=path, vocabulary_from=str(tmp_path / "run"), shares=[0.5, 0.25, 0.25], context=4)
    assert corpus.missing() == ""
    assert corpus.load()[0] == Characters("elin")


def test_options_are_written_out() -> None:
    options = with_defaults(Text, {})
    assert options["vocabulary"] == "characters"
    assert options["context"] == 128
    assert {key for key, value in options.items() if value is None} == {
        "train",
        "validation_file",
        "test",
        "path",
        "shares",
        "vocabulary_size",
        "vocabulary_from",
    }


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        ({"path": "a", "train": "b"}, "data.path: is cut into all splits; leave out train, or this"),
        ({"shares": [0.8, 0.1, 0.1]}, "data.shares: are those of data.path, which is not given"),
        ({"path": "a", "shares": [0.8, 0.1, 0.2]}, "data.shares: add up to 1.1, not to 1"),
        ({"vocabulary_size": 99}, "data.vocabulary_size: is for a vocabulary of words and bpe, not of characters"),
        ({"vocabulary": "bpe", "min_count": 2}, "data.min_count: is for a vocabulary of words, not of bpe"),
        (
            {"vocabulary": "words", "min_count": 2, "vocabulary_from": "r"},
            "data.min_count: is of no use with vocabulary_from; leave one of them out",
        ),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], fault: str) -> None:
    with pytest.raises(ValueError, match=r"^data\.") as error:
        Text(**options)
    assert str(error.value) == fault


def test_what_is_missing_is_named_by_its_option(tmp_path: Path) -> None:
    there = write(tmp_path / "a.txt", LINES)
    (tmp_path / "empty").mkdir()
    either = "or data.path, one text that is cut into all splits"
    assert Text().missing() == f"data.train: is missing; give a text to train on, {either}"
    assert Text(train=there).missing() == f"data.test: is missing; give a text to report on, {either}"
    no = tmp_path / "no.txt"
    assert Text(train=there, test=str(no)).missing() == f"data.test: there is no file {no}"
    assert Text(path=f"{tmp_path}/*.md").missing() == f"data.path: no file matches {tmp_path}/*.md"
    assert Text(path=f"{tmp_path}/empty").missing() == f"data.path: {tmp_path}/empty has no .txt files"
    gone = Text(path=there, vocabulary_from=str(no))
    assert gone.missing().startswith(f"data.vocabulary_from: {no}: does not exist; give a run's folder")
    with pytest.raises(DataError, match=r"^text: data.train: is missing"):
        Text().load()


def test_texts_that_are_too_short_or_none(tmp_path: Path) -> None:
    empty, short = write(tmp_path / "empty.txt", ""), write(tmp_path / "short.txt", "abcd\n")
    with pytest.raises(DataError) as error:
        Text(train=short, test=empty).load()
    assert str(error.value) == f"text: data.test: {empty}: is empty; give a text"
    with pytest.raises(DataError) as error:
        Text(train=short, validation_file=short, test=short, context=5).load()
    assert str(error.value) == (
        "text: the train split has 5 tokens, and a window of context 5 needs 6; "
        "give a longer text, or a smaller context"
    )
    assert len(Text(train=short, validation_file=short, test=short, context=4).load()[1]["train"]) == 1
    with pytest.raises(DataError, match="text: the validation split has no text; give more, or larger shares"):
        Text(path=short).load()
    with pytest.raises(DataError) as error:
        encode_file(short, Characters("a"), 5)
    assert str(error.value).startswith(f"{short} has 5 tokens, and a window of context 5 needs 6")
    with pytest.raises(DataError, match=r"there is no file .*gone.txt; give a UTF-8 text file, a folder"):
        encode_file(tmp_path / "gone.txt", Characters("a"), 5)


def test_a_size_that_cannot_be(tmp_path: Path) -> None:
    path = write(tmp_path / "a.txt", LINES)
    with pytest.raises(DataError, match=r"^text: data.vocabulary_size: a BPE needs a size of 256 or more"):
        Text(path=path, vocabulary="bpe", vocabulary_size=100).load()


def test_text_of_ones_own_cannot_be_fetched() -> None:
    with pytest.raises(DataError, match=r"this is text of your own, which cannot be fetched; give data\.train"):
        Text().fetch()


def test_files_and_places(tmp_path: Path) -> None:
    path = write(tmp_path / "in" / "a.txt", LINES)
    corpus = Text(train=path, test=str(tmp_path / "no.txt"))
    assert [(check.path, check.status, check.detail) for check in corpus.files()] == [
        (tmp_path / "in" / "a.txt", "no checksum known", "train"),
        (tmp_path / "no.txt", "missing", "test"),
    ]
    assert corpus.places() == [tmp_path / "in"]
