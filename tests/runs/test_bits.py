"""Which images were right, as a cell of a table."""

from __future__ import annotations

import base64
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from kattn_cli.errors import RunError
from kattn_cli.runs.bits import packed, unpacked
from kattn_cli.runs.csv_rows import append_rows, header_of, read_rows, replace_rows


@pytest.mark.parametrize("images", [1, 7, 8, 9, 355])
def test_what_is_packed_comes_back(images: int) -> None:
    right = np.random.default_rng(images).random(images) < 0.7
    assert unpacked(packed(right), images).tolist() == right.tolist()


@pytest.mark.parametrize(("accuracy", "most"), [(0.5, 1700), (0.88, 1200), (0.99, 300)])
def test_the_cell_of_ten_thousand_images_is_small(accuracy: float, most: int) -> None:
    """1.25 kB of bits and what base64 adds, where nothing can be compressed; a cell has no comma and no quote."""
    cell = packed(np.random.default_rng(0).random(10_000) < accuracy)
    assert len(cell) <= most
    assert not set(cell) & set(',"\n')


@pytest.mark.parametrize(
    "damage",
    [
        lambda cell: cell[:-4],
        lambda cell: cell[:20] + ("A" if cell[20] != "A" else "B") + cell[21:],
        lambda cell: "what is this?",
        lambda cell: base64.b64encode(b"no zlib").decode(),
    ],
)
def test_a_damaged_cell_is_found_where_it_is_read(tmp_path: Path, damage: Callable[[str], str]) -> None:
    cell = packed(np.random.default_rng(0).random(355) < 0.7)
    path = tmp_path / "eval.csv"
    path.write_text(f"split,images,top1,correct\ntest,355,70,{cell}\ntest,355,70,{damage(cell)}\n")
    what = "row 3, column correct: which of 355 images are right was expected, in base64 of zlib, and is damaged"
    with pytest.raises(RunError) as fault:
        read_rows(path)
    assert str(fault.value) == f"{path}: {what}; mend or remove that row"
    with pytest.raises(RunError, match=r"is damaged$"):
        unpacked(damage(cell), 355)


def test_bits_of_another_number_of_images_are_refused() -> None:
    right = np.ones(355, bool)
    for images in (340, 350, 354, 363):
        with pytest.raises(RunError, match=f"^which of {images} images are right was expected, not bits of another"):
            unpacked(packed(right), images)
    with pytest.raises(RunError, match="another number"):
        unpacked(base64.b64encode(zlib.compress(b"")).decode(), 1)


def test_the_column_is_the_last_and_measured(tmp_path: Path) -> None:
    """Also of a file to which a later version adds columns; another cell is no other measurement."""
    path = tmp_path / "eval.csv"
    cells = [packed(np.arange(8) < count) for count in (3, 4)]
    append_rows(path, [{"split": "test", "images": 8, "top1": 37.5, "correct": cells[0]}])
    replace_rows(path, [{"split": "test", "images": 8, "top1": 50, "correct": cells[1], "path": ""}])
    assert header_of(path) == ["split", "images", "top1", "path", "correct"]
    assert [row["correct"] for row in read_rows(path)] == [cells[1]]
    append_rows(path, [{"split": "train", "images": 8, "top1": 50}])
    assert [row["correct"] for row in read_rows(path)] == [cells[1], ""], "of an earlier version"
