"""The UEA archive's time series: as aeon reads them, padded, without gaps, and what a damaged file is told."""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.error import URLError

import numpy as np
import pandas as pd
import pytest
import torch
from tiny_series import UNCOUNTED, ts_text, write_series

from kattn_cli.data.dataset import SequenceFacts
from kattn_cli.data.reading.series_files import outline, read_series, without_gaps
from kattn_cli.data.sets import uea
from kattn_cli.data.sets.uea import SIZES, Uea
from kattn_cli.errors import DataError
from kattn_cli.recipe.options import arguments, option_faults

needs_aeon = pytest.mark.skipif(find_spec("aeon") is None, reason="aeon is an optional extra")
SERIES = [np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]]), np.array([[7.0, 8.0], [9.0, 10.0]])]


@pytest.fixture(autouse=True)
def _nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "shared"))


def tiny(root: Path) -> Uea:
    return Uea(set_=UNCOUNTED, root=str(root))  # type: ignore[arg-type]


def written(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "x.ts"
    path.write_text(text, encoding="utf-8")
    return path


@needs_aeon
def test_japanese_vowels_come_with_aeon() -> None:
    from aeon.datasets import load_classification

    source = Uea()
    assert source.missing() == ""
    assert source.facts() == SequenceFacts(classes=9, seq_len=29, channels=12)
    splits = source.load()
    for split, count in (("train", 270), ("test", 370)):
        ours = splits[split]  # type: ignore[index]
        theirs, labels = load_classification("JapaneseVowels", split=split, load_equal_length=False)[:2]
        assert len(ours) == len(theirs) == count
        assert ours.values.dtype == torch.float32
        assert ours.values.shape[2] == 12
        assert ours.lengths.tolist() == [series.shape[1] for series in theirs]
        assert ours.labels.tolist() == [int(label) - 1 for label in labels]
        for row, series in zip(ours.values, theirs, strict=True):
            steps = series.shape[1]
            assert torch.equal(row[:steps], torch.tensor(series.T, dtype=torch.float32))
            assert not row[steps:].any()
    assert (splits["train"].lengths.min(), splits["train"].lengths.max()) == (7, 26)
    assert (splits["test"].lengths.min(), splits["test"].lengths.max()) == (7, 29)
    assert [check.detail for check in source.files()] == [
        "270 series of 12 channels, 7 – 26 steps",
        "370 series of 12 channels, 7 – 29 steps",
    ]


@needs_aeon
def test_basic_motions_are_of_one_length_and_have_names_for_classes() -> None:
    source = Uea(set_="BasicMotions")
    assert source.facts() == SequenceFacts(classes=4, seq_len=100, channels=6)
    train = source.load()["train"]
    assert train.values.shape == (40, 100, 6)
    assert train.lengths.unique().tolist() == [100]
    named = outline(source.places()[0] / "BasicMotions_TRAIN.ts").labels
    order = ["badminton", "running", "standing", "walking"]
    assert [order[label] for label in train.labels.tolist()] == list(named)


@needs_aeon
@pytest.mark.parametrize("flat", [False, True])
def test_own_folder_of_unequal_series(flat: bool, tmp_path: Path) -> None:
    expected = write_series(tmp_path)
    source = tiny(tmp_path / UNCOUNTED if flat else tmp_path)
    assert source.places() == [tmp_path / UNCOUNTED]
    assert source.facts() == SequenceFacts(classes=3, seq_len=8, channels=2)
    splits = source.load()
    for split, (series, labels) in expected.items():
        ours = splits[split]  # type: ignore[index]
        assert ours.lengths.tolist() == [one.shape[1] for one in series]
        assert ours.labels.tolist() == [int(label[1:]) for label in labels]
        batch, _ = ours.take(slice(0, 3))
        assert batch.values.shape == (3, 5, 2)
        assert batch.mask is not None
        assert batch.mask.sum(1).tolist() == [3, 4, 5]
        assert batch.values[0].T.tolist() == [[*map(np.float32, row), 0, 0] for row in series[0]]


def test_gaps_by_hand() -> None:
    nan = np.nan
    filled = without_gaps(np.array([[nan, 1.0, nan, nan, 4.0, nan], [nan] * 6, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]]))
    assert filled.tolist() == [[1, 1, 2, 3, 4, 4], [0] * 6, [1, 2, 3, 4, 5, 6]]


def test_gaps_as_pandas_fills_them_for_zerveas() -> None:
    draw = np.random.default_rng(0)
    values = draw.normal(size=(5, 40))
    values[draw.random(values.shape) < 0.3] = np.nan
    frame = pd.DataFrame(values.T).interpolate(method="linear", limit_direction="both")
    np.testing.assert_allclose(without_gaps(values), frame.to_numpy().T, rtol=1e-12)


@needs_aeon
def test_gaps_in_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, ts_text([np.array([[1.0, np.nan, 3.0], [np.nan, 5.0, np.nan]])], ["a"]))
    assert read_series(path)[0].T.tolist() == [[1, 2, 3], [5, 5, 5]]


def test_outline_without_what_a_header_may_leave_out(tmp_path: Path) -> None:
    found = outline(written(tmp_path, "@problemName X\n@equalLength false\n@data\n1,2:3,4:Ab\n1,2,3:4,5,6:b\n"))
    assert (found.channels, found.lengths, found.labels) == (2, (2, 3), ("ab", "b"))


WHOLE = ts_text(SERIES, ["one", "two"])
LAST = WHOLE.index("7.0")
CUTS: dict[str, tuple[str, str]] = {
    "empty": ("", "{path}: is empty; get it again"),
    "in the header": (
        WHOLE[: WHOLE.index("@dimensions")],
        "{path}: has no line @data: it is cut short, or no .ts file; get it again",
    ),
    "something else": ("\x00\x01 PK", "{path}: has no line @data: it is cut short, or no .ts file; get it again"),
    "after the header": (
        WHOLE[: WHOLE.index("1.0")],
        "{path}: has no series after its header; the file is cut short or damaged",
    ),
    "within the first channel": (
        WHOLE[: LAST + 4],
        "{path}, line 10: has 0 channels, not 2; the file is cut short or damaged",
    ),
    "within the last channel": (
        WHOLE[: WHOLE.index("9.0") + 12],
        "{path}, line 10: has 1 channel, not 2; the file is cut short or damaged",
    ),
    "before the class": (
        WHOLE[: WHOLE.rindex("two")],
        "{path}, line 10: has no class; the file is cut short or damaged",
    ),
    "within the class": (
        WHOLE.rstrip()[:-1],
        '{path}, line 10: has the class "tw", none of one, two; the file is cut short or damaged',
    ),
    "a value lost": (
        WHOLE.replace("8.000000:", "8.000000,1:"),
        "{path}, line 10: its channels have from 2 to 3 steps; the file is cut short or damaged",
    ),
    "unequal": (
        WHOLE.replace("@equalLength false", "@equalLength true"),
        "{path}, line 10: has 2 steps, not 3; the file is cut short or damaged",
    ),
    "a blank line": (WHOLE + "\n", "{path}, line 11: has 0 channels, not 2; the file is cut short or damaged"),
    "times": (
        WHOLE.replace("@timeStamps false", "@timeStamps true"),
        "{path}: its header says @timeStamps true, and series with times are not read here",
    ),
    "a regression": (
        WHOLE.replace("@classLabel true one two", "@classLabel false"),
        "{path}: its header says @classLabel false; series without classes cannot be classified",
    ),
}


@pytest.mark.parametrize("where", CUTS)
def test_what_a_damaged_file_shows(where: str, tmp_path: Path) -> None:
    text, message = CUTS[where]
    path = written(tmp_path, text)
    with pytest.raises(DataError) as caught:
        outline(path)
    assert str(caught.value) == message.format(path=path)


def test_every_cut_shows_but_one_at_the_end_of_a_line(tmp_path: Path) -> None:
    """Also one that loses no more than the end of the last line."""
    series_left = {LAST - 1: 1, LAST: 1, len(WHOLE) - 1: 2, len(WHOLE): 2}
    for end in range(len(WHOLE) + 1):
        path = written(tmp_path, WHOLE[:end])
        if end in series_left:
            assert len(outline(path).labels) == series_left[end]
        else:
            with pytest.raises(DataError):
                outline(path)


@needs_aeon
def test_a_file_cut_between_lines_shows_where_the_archive_s_numbers_are_known(tmp_path: Path) -> None:
    write_series(tmp_path, "Heartbeat")
    source = Uea(set_="Heartbeat", root=str(tmp_path))
    message = "is cut short: it has 12 series, and Heartbeat has 204; get it again"
    with pytest.raises(DataError) as caught:
        source.facts()
    assert str(caught.value) == f"{tmp_path / 'Heartbeat' / 'Heartbeat_TRAIN.ts'}: {message}"
    assert [(check.status, check.detail) for check in source.files()] == [
        ("wrong checksum", message),
        ("wrong checksum", "is cut short: it has 6 series, and Heartbeat has 205; get it again"),
    ]


@needs_aeon
@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("nine", "{path}: cannot be read: could not convert string to float: 'nine'"),
        ("inf", "{path}, series 2: holds a value that is infinite"),
        ("1e300", "{path}, series 2: holds a value that is infinite"),
    ],
)
def test_values_that_are_no_numbers(value: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path, WHOLE.replace("9.000000", value))
    with pytest.raises(DataError) as caught:
        read_series(path)
    assert str(caught.value) == message.format(path=path)


@needs_aeon
def test_a_class_that_training_has_not(tmp_path: Path) -> None:
    write_series(tmp_path)
    path = tmp_path / UNCOUNTED / f"{UNCOUNTED}_TEST.ts"
    path.write_text(ts_text(SERIES, ["c1", "c7"]), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        tiny(tmp_path).load()
    assert str(caught.value) == f'{path}, series 2: no training series is of its class "c7"'


@needs_aeon
def test_other_channels_than_in_training(tmp_path: Path) -> None:
    write_series(tmp_path)
    folder = tmp_path / UNCOUNTED
    path = folder / f"{UNCOUNTED}_TEST.ts"
    path.write_text(ts_text([series[:1] for series in SERIES], ["c0", "c1"]), encoding="utf-8")
    with pytest.raises(DataError) as caught:
        tiny(tmp_path).facts()
    assert str(caught.value) == f"{path}: channels: 1, and 2 in {folder / f'{UNCOUNTED}_TRAIN.ts'}"


@needs_aeon
def test_missing_files(tmp_path: Path) -> None:
    write_series(tmp_path)
    (tmp_path / UNCOUNTED / f"{UNCOUNTED}_TEST.ts").unlink()
    source = tiny(tmp_path)
    assert source.missing() == (
        f"there is no {UNCOUNTED}_TEST.ts in {tmp_path / UNCOUNTED} or {tmp_path}; kattn data fetch uea "
        f"set={UNCOUNTED} downloads it; or unpack {UNCOUNTED}.zip of https://www.timeseriesclassification.com "
        "and give its folder as root"
    )
    assert source.places() == [tmp_path / UNCOUNTED, tmp_path]
    assert [check.status for check in source.files()] == ["no checksum known", "missing"]
    with pytest.raises(DataError, match=rf"^uea: there is no {UNCOUNTED}_TEST.ts in "):
        source.facts()
    assert Uea(set_="JapaneseVowels", root=str(tmp_path)).missing()


@needs_aeon
def test_without_a_root_ones_own_copy_goes_first(tmp_path: Path) -> None:
    own = tmp_path / "shared" / "uea" / "BasicMotions"
    assert len(Uea(set_="Libras").places()) == 3
    shutil.copytree(Uea(set_="BasicMotions").places()[0], own)
    assert Uea(set_="BasicMotions").places() == [own]


def test_without_aeon(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_series(tmp_path)
    monkeypatch.setattr(uea, "find_spec", lambda name: None)
    message = "time series are read by aeon, which is not installed: pip install 'kattn[series]'"
    assert tiny(tmp_path).missing() == f"data.set: {message}"
    with pytest.raises(DataError) as caught:
        tiny(tmp_path).load()
    assert str(caught.value) == f"uea: data.set: {message}"
    with pytest.raises(DataError) as caught:
        tiny(tmp_path).fetch()
    assert str(caught.value) == f"uea: {message}"


def test_a_set_that_does_not_exist() -> None:
    (fault,) = option_faults(Uea, {"set": "HandWriting"}, ("data",))
    assert fault.path == ("data", "set")
    assert fault.message.startswith("expected one of ArticularyWordRecognition, AtrialFibrillation, ")
    assert fault.message.endswith(', UWaveGestureLibrary, not "HandWriting"; did you mean "Handwriting"?')
    assert not option_faults(Uea, {"set": "PEMS-SF"}, ("data",))
    assert Uea(**arguments(Uea, {"set": "PEMS-SF"})).set == "PEMS-SF"
    assert not any(option_faults(Uea, {"set": name}, ()) for name in SIZES)


@needs_aeon
def test_fetching(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[tuple[str, Path]] = []

    def load(name: str, split: str, extract_path: str) -> None:
        asked.append((name, Path(extract_path)))
        write_series(Path(extract_path), name)

    monkeypatch.setattr("aeon.datasets.load_classification", load)
    source = tiny(tmp_path / "root")
    source.fetch()
    assert [name for name, _ in asked] == [UNCOUNTED]
    assert not asked[0][1].exists()
    assert source.missing() == ""
    assert source.places() == [tmp_path / "root" / UNCOUNTED]
    assert source.facts().classes == 3


@needs_aeon
@pytest.mark.parametrize("what", ["no network", "cut"])
def test_fetching_in_vain_leaves_nothing(what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, split: str, extract_path: str) -> Any:
        if what == "no network":
            raise ValueError("Could not download files\nfor ERing") from URLError("no route")
        write_series(Path(extract_path), name)
        path = Path(extract_path) / name / f"{name}_TEST.ts"
        path.write_bytes(path.read_bytes()[:-2])

    monkeypatch.setattr("aeon.datasets.load_classification", load)
    source = tiny(tmp_path / "root")
    with pytest.raises(DataError) as caught:
        source.fetch()
    if what == "no network":
        assert str(caught.value) == (
            f"uea, {UNCOUNTED}: cannot be downloaded into {tmp_path / 'root'}: Could not download files for ERing; "
            f"instead, unpack https://www.timeseriesclassification.com/aeon-toolkit/{UNCOUNTED}.zip there"
        )
    else:
        assert "has the class" in str(caught.value)
    assert not list((tmp_path / "root").rglob("*.ts"))
    assert source.missing()
