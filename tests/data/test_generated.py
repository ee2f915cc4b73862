"""What is generated is made once, by one process, and made again if it is damaged."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from kattn_cli.data.reading.storage import Damaged, kept
from kattn_cli.errors import DataError


def read(path: Path) -> str:
    text = path.read_text()
    if not text.endswith("."):
        raise Damaged
    return text


def test_made_once(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "file"
    made: list[Path] = []

    def write(new: Path) -> None:
        made.append(new)
        new.write_text("whole.")

    assert [kept(path, read, write) for _ in range(2)] == ["whole.", "whole."]
    assert len(made) == 1
    assert made[0] != path
    path.write_text("who")
    assert kept(path, read, write) == "whole."
    assert len(made) == 2


def test_the_second_waits_for_the_first(tmp_path: Path) -> None:
    path, made, found = tmp_path / "file", [], []

    def write(new: Path) -> None:
        made.append(new)
        time.sleep(0.2)
        new.write_text("whole.")

    threads = [threading.Thread(target=lambda: found.append(kept(path, read, write))) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == ["whole."] * 3
    assert len(made) == 1


def test_nothing_is_left_of_one_that_fails(tmp_path: Path) -> None:
    def write(new: Path) -> None:
        new.write_text("ha")
        raise DataError("cannot be generated")

    with pytest.raises(DataError, match="cannot be generated"):
        kept(tmp_path / "file", read, write)
    assert [path.name for path in tmp_path.iterdir() if path.name != ".file.lock"] == []


def test_where_nothing_can_be_written(tmp_path: Path) -> None:
    (tmp_path / "a file").write_text("")
    path = tmp_path / "a file" / "deep" / "file"
    with pytest.raises(DataError) as caught:
        kept(path, read, lambda new: None)
    assert str(caught.value) == f"{path}: cannot be written: Not a directory"
