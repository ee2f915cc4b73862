"""Damaged data files of every reader: one line that names the file, or what the whole file gave.

A file is cut short, emptied, flipped in one bit, and replaced by text, by noise and by a folder.
"""

from __future__ import annotations

import gzip
import json
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from image_files import picture
from tiny_data import idx
from tiny_series import ts_text
from tiny_trajectories import arrays, write
from tokenizers import models, pre_tokenizers

from kattn_cli.data.corpora import encode_file
from kattn_cli.data.corruptions import read_textures
from kattn_cli.data.reading.encoded import Unreadable, as_uint8, open_image
from kattn_cli.data.reading.parquet import read_parquet
from kattn_cli.data.reading.series_files import outline, read_series
from kattn_cli.data.reading.storage import Damaged
from kattn_cli.data.segmentation.layout import class_list
from kattn_cli.data.sets import aan, pixels
from kattn_cli.data.sets.d4rl import read_d4rl
from kattn_cli.data.sets.imagefolder import read_class_list
from kattn_cli.data.sets.listops import data_set as listops_files
from kattn_cli.data.sets.listops.expressions import Sequences
from kattn_cli.data.sets.listops.generate import read as read_listops
from kattn_cli.data.sets.listops.generate import write as write_listops
from kattn_cli.data.sets.mnist import read_idx, read_labels
from kattn_cli.data.sets.pathfinder.generate import read_rows
from kattn_cli.data.sets.sentences.sentence_set import text_of
from kattn_cli.data.vocabulary import build_vocabulary, read_vocabulary
from kattn_cli.data.vocabulary.bpe import byte_level
from kattn_cli.errors import DataError, KattnError

FLIPS = 40


@dataclass(frozen=True)
class Format:
    """``make`` writes a sound file, ``read`` reads it; ``knows`` what of a damage the format itself tells.

    ``all``: a checksum covers every byte; ``length``: it says how much there is of it; ``nothing``: a file that ends
    early, and one with another letter, are files like any other.
    """

    name: str
    make: Callable[[Path], object]
    read: Callable[[Path], Any]
    knows: str = "nothing"
    needs: str | None = None


def jpeg(path: Path) -> None:
    picture(1).save(path, quality=90)


def image(path: Path) -> Any:
    try:
        return as_uint8(open_image(str(path), 3)).tolist()
    except Unreadable as error:
        # Who asked for it puts the name before: see Corruption.note.
        raise DataError(f"{path}: {error}") from None


def remade(read: Callable[[Path], Any]) -> Callable[[Path], Any]:
    """A reader of a copy, which is made again where it is damaged."""

    def reader(path: Path) -> Any:
        try:
            return read(path)
        except (Damaged, OSError):
            raise DataError(f"{path}: would be made again") from None

    return reader


def pairs(path: Path) -> Any:
    split = aan.Aan(seq_len=8)._split(path)
    return split.values, split.lengths, split.labels


def series(path: Path) -> Any:
    found = outline(path)
    return read_series(path), found.labels


def trajectories(path: Path) -> Any:
    one = read_d4rl(path, "hopper")
    return (one.observations, one.actions, one.rewards, one.ends, one.low, one.high)


def vocabulary_maker(kind: str) -> Callable[[Path], object]:
    texts = ["the cat sat on the mat\n" * 3]
    return lambda path: path.write_text(json.dumps(build_vocabulary(kind, {}, texts).to_json()))


def tokenizer(path: Path) -> None:
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    tokens = {token: number for number, token in enumerate([*letters, "at"])}
    path.write_text(byte_level(models.BPE(vocab=tokens, merges=[("a", "t")])).to_str())


def write_parquet(path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"text": ["a", "b", "c" * 50], "label": [0, 1, 0]}), path)


SEQUENCES = Sequences(np.arange(6, dtype=np.uint8), np.array([2, 4]), np.array([1, 2], np.uint8))
GREY = np.random.default_rng(0).integers(0, 256, (5, 28, 28))
TABLE = "1.0\ta\tb\tfirst text\tsecond\n0.0\tc\td\tx\ty\n"
ROW = np.dtype([("texts", np.uint8, (2, 8)), ("lengths", np.int64, 2), ("label", np.int64)])

FORMATS = [
    Format(
        "images.idx", lambda path: path.write_bytes(idx(GREY)), lambda path: read_idx(path, (28, 28)).tolist(), "length"
    ),
    Format(
        "images.idx.gz",
        lambda path: path.write_bytes(gzip.compress(idx(GREY))),
        lambda path: read_idx(path, (28, 28)).tolist(),
        "all",
    ),
    Format(
        "labels.idx",
        lambda path: path.write_bytes(idx(np.arange(5))),
        lambda path: read_labels(path, 5, 10).tolist(),
        "length",
    ),
    Format("picture.png", lambda path: picture(1).save(path), image, "length"),
    Format("picture.jpg", jpeg, image, "length"),
    Format(
        "frost.png",
        lambda path: picture(1).save(path),
        lambda path: read_textures(path.parent),
        "length",
    ),
    Format("a.ts", lambda path: path.write_text(ts_text([np.eye(2), np.ones((2, 3))], "ab")), series, needs="aeon"),
    Format(
        "lists.tsv",
        lambda path: path.write_text("Source\tTarget\n( ( ( [MAX 2 ) 9 ) ] )\t9\n[MIN 4 7 ]\t4\n"),
        lambda path: vars(listops_files.read_file(path, 20)),
    ),
    Format("pairs.tsv", lambda path: path.write_text(TABLE), pairs),
    Format("text.txt", lambda path: path.write_text("some text é\n"), text_of),
    Format(
        "corpus.txt",
        lambda path: path.write_text("some text é\n" * 9),
        lambda path: encode_file(path, build_vocabulary("bytes", {}, []), 4).split.tokens.tolist(),
    ),
    Format("classes.txt", lambda path: path.write_text("cat\ndog # barks\nowl\n"), read_class_list),
    Format(
        "objectInfo3.txt",
        lambda path: path.write_text("Idx\tName\n1\tcat\n2\tdog\n"),
        lambda path: class_list(path.parent),
    ),
    *(
        Format(f"{kind}.json", vocabulary_maker(kind), lambda path: read_vocabulary(str(path)).to_json())
        for kind in ("bytes", "characters", "words", "bpe")
    ),
    Format("tokenizer.json", tokenizer, lambda path: read_vocabulary(str(path)).to_json()),
    Format("train.parquet", write_parquet, lambda path: read_parquet([path]).to_pydict(), "length"),
    Format("hopper.hdf5", lambda path: write(path, arrays()), trajectories, "length", needs="h5py"),
    Format(
        "listops.npz",
        lambda path: write_listops(path, SEQUENCES),
        remade(lambda path: vars(read_listops(path, 2))),
        "all",
    ),
    Format(
        "pixels.npz",
        lambda path: np.savez(path, *[np.arange(4 * 9, dtype=np.uint8).reshape(4, 1, 3, 3), np.arange(4)] * 2),
        remade(lambda path: {name: (one.images, one.labels) for name, one in pixels._read(path).items()}),
        "all",
    ),
    Format(
        "paths.npy",
        lambda path: np.save(path, np.arange(3 * 17, dtype=np.uint8).reshape(3, 17)),
        remade(lambda path: read_rows(path, 3, 4)),
        "length",
    ),
    Format(
        "pairs.npy",
        lambda path: np.save(path, np.zeros(3, ROW)),
        remade(lambda path: aan.Aan(seq_len=8)._read(path)),
        "length",
    ),
]


def damages(content: bytes, seed: int = 0) -> Iterator[tuple[str, bytes | None]]:
    """Damaged contents by what was done; None is a folder."""
    draw = np.random.default_rng(seed)
    yield "emptied", b""
    yield "cut by a byte", content[:-1]
    for _ in range(8):
        yield "cut", content[: int(draw.integers(1, len(content)))]
    yield "longer", content + b"\0" * 9
    yield "text", b"this is not the file\nthat you look for\n"
    yield "noise", draw.bytes(len(content))
    yield "zeros", bytes(len(content))
    yield "deep", b"[" * 100_000
    yield "folder", None
    for _ in range(FLIPS):
        flipped, at, bit = bytearray(content), int(draw.integers(len(content))), int(draw.integers(8))
        flipped[at] ^= 1 << bit
        yield f"bit {bit} of byte {at}", bytes(flipped)


@pytest.mark.parametrize("one", FORMATS, ids=lambda one: one.name)
def test_damage_is_one_line_or_the_data_that_the_format_cannot_tell_from_it(
    one: Format, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other data come only from a format without checksum, and shorter ones only from one without a length."""
    if one.needs and not find_spec(one.needs):
        pytest.skip(f"{one.needs} is not installed")
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "caches"))
    path = tmp_path / "data" / one.name
    path.parent.mkdir()
    one.make(path)
    whole, content = one.read(path), path.read_bytes()
    other = []
    for what, damaged in damages(content):
        path.unlink()
        if damaged is None:
            path.mkdir()
        else:
            path.write_bytes(damaged)
        found, error = outcome(one, path)
        if isinstance(error, KattnError):
            assert str(path if damaged is not None else path.parent) in str(error), f"{what}: {error}"
            assert len(str(error).splitlines()) == 1, f"{what}: {error}"
        elif error:
            raise AssertionError(f"{what}: {type(error).__name__}") from error
        elif not same(found, whole):
            other.append(what)
        if damaged is None:
            path.rmdir()
            path.touch()
    told = {"all": [], "length": ["bit"], "nothing": ["bit", "cut", "longer", "text", "zeros", "deep"]}[one.knows]
    unexpected = [what for what in other if what.split()[0] not in told]
    assert not unexpected, f"other data without a word: {unexpected}"


def outcome(one: Format, path: Path) -> tuple[Any, Exception | None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return one.read(path), None
        except Exception as error:
            return None, error


def same(found: Any, whole: Any) -> bool:
    if isinstance(found, torch.Tensor | np.ndarray):
        return np.array_equal(np.asarray(found), np.asarray(whole))
    if isinstance(found, dict):
        return found.keys() == whole.keys() and all(same(found[key], whole[key]) for key in found)
    if isinstance(found, list | tuple):
        return len(found) == len(whole) and all(same(*pair) for pair in zip(found, whole, strict=True))
    return bool(found == whole)
