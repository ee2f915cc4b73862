"""Files read in pieces against files read at once."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from kattn_cli.data.corpora import source
from kattn_cli.data.corpora.source import Span, chunks, cut, length, source_at
from kattn_cli.data.corpora.tokens import encode_source, encode_texts
from kattn_cli.data.vocabulary import build_vocabulary
from kattn_cli.errors import DataError


@pytest.fixture(autouse=True)
def _small(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "kattn"))
    monkeypatch.setattr(source, "CHUNK", 7)


def text_of(size: int) -> str:
    draw = np.random.default_rng(1)
    return "".join(draw.choice(list("abcé😀\u2028 \n\r\t"), size))


def test_chunks_are_small_and_make_the_whole(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    text = text_of(2000)
    path.write_bytes(text.encode())
    found = list(chunks(source_at(str(path))))
    assert "".join(found) == text
    assert len(found) > 100
    assert all(before[-1].strip() or after[0].strip() for before, after in pairwise(found))


@pytest.mark.parametrize("kind", ["bytes", "characters", "words", "bpe"])
def test_tokens_of_chunks_are_those_of_the_whole(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    text = text_of(2000)
    path.write_bytes(text.encode())
    vocabulary = build_vocabulary(kind, {}, [text[:1000]])
    encoded = encode_source(source_at(str(path)), vocabulary)
    assert encoded.tokens.tolist() == vocabulary.encode(text).tolist()
    assert encoded.bytes_ == len(text.encode())
    in_memory = encode_texts(chunks(source_at(str(path))), vocabulary)
    assert in_memory.tokens.tolist() == encoded.tokens.tolist()
    assert in_memory[1:] == encoded[1:]


def test_a_text_without_a_place_to_cut_is_cut_anywhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "LONGEST", 20)
    path = tmp_path / "a.txt"
    path.write_text("é" * 100, encoding="utf-8")
    found = list(chunks(source_at(str(path))))
    assert "".join(found) == "é" * 100
    assert max(map(len, found)) <= 24


def test_files_end_words(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text(f"in {name}", encoding="utf-8")
    assert list(chunks(source_at(str(tmp_path)))) == ["in a", "in b"]


@pytest.mark.parametrize("after", ["é" * 3, "", "ab cd\n" * 9])
def test_what_is_no_utf_8_is_named_with_its_place(after: str, tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    before = "ab é 😀\n" * 11
    path.write_bytes(before.encode() + b"\xe9" + after.encode())
    with pytest.raises(DataError) as error:
        list(chunks(source_at(str(path))))
    offset = len(before.encode())
    assert str(error.value) == (
        f"{path}: is not UTF-8: byte 0xe9 at offset {offset}; convert it, for instance with iconv"
    )


def test_a_file_that_shrinks_meanwhile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("abc", encoding="utf-8")
    with pytest.raises(DataError, match="became shorter while it was read"):
        list(chunks((Span(path, 0, 5),)))


def test_a_text_is_cut_at_line_ends_and_between_files(tmp_path: Path) -> None:
    for name, text in (("a", "12345\n789\n"), ("b", "ABCD\nFGHI\n")):
        (tmp_path / f"{name}.txt").write_bytes(text.encode())
    whole = source_at(str(tmp_path))

    def texts(*shares: float) -> list[str]:
        return ["".join(chunks(part)) for part in cut(whole, shares)]

    assert texts(0.5, 0.5) == ["12345\n789\n", "ABCD\nFGHI\n"]
    assert texts(0.05, 0.3, 0.65) == ["12345\n", "789\n", "ABCD\nFGHI\n"]
    assert texts(0.3, 0.3, 0.4) == ["12345\n", "789\nABCD\n", "FGHI\n"]
    assert texts(0.6, 0.01, 0.39) == ["12345\n789\nABCD\n", "", "FGHI\n"]
    assert [length(part) for part in cut(whole, (0.3, 0.3, 0.4))] == [6, 9, 5]


def test_a_long_line_is_cut_between_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "_LOOK_FOR_LINE_END", 9)
    path = tmp_path / "a.txt"
    path.write_text("😀" * 25, encoding="utf-8")
    parts = cut(source_at(str(path)), (0.01, 0.5, 0.49))
    assert ["".join(chunks(part)) for part in parts] == ["😀", "😀" * 12, "😀" * 12]
