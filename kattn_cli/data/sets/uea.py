"""The UEA archive: 30 sets of multivariate time series, each with a class (Bagnall et al. 2018, arXiv:1811.00075)."""

from __future__ import annotations

import os
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar, Literal

import torch

from kattn_cli.data.dataset import FileCheck, SequenceDataSet, SequenceFacts
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.series_files import Outline, in_one_line, outline, read_series
from kattn_cli.data.reading.storage import default_root, downloading
from kattn_cli.data.sequences import SequenceSplit, padded
from kattn_cli.errors import DataError

UeaSet = Literal[
    "ArticularyWordRecognition",
    "AtrialFibrillation",
    "BasicMotions",
    "CharacterTrajectories",
    "Cricket",
    "DuckDuckGeese",
    "EigenWorms",
    "Epilepsy",
    "ERing",
    "EthanolConcentration",
    "FaceDetection",
    "FingerMovements",
    "HandMovementDirection",
    "Handwriting",
    "Heartbeat",
    "InsectWingbeat",
    "JapaneseVowels",
    "Libras",
    "LSST",
    "MotorImagery",
    "NATOPS",
    "PEMS-SF",
    "PenDigits",
    "PhonemeSpectra",
    "RacketSports",
    "SelfRegulationSCP1",
    "SelfRegulationSCP2",
    "SpokenArabicDigits",
    "StandWalkJump",
    "UWaveGestureLibrary",
]

SIZES: dict[str, tuple[int, int]] = {
    "BasicMotions": (40, 40),
    "EthanolConcentration": (261, 263),
    "FaceDetection": (5890, 3524),
    "Handwriting": (150, 850),
    "Heartbeat": (204, 205),
    "JapaneseVowels": (270, 370),
    "PEMS-SF": (267, 173),
    "SelfRegulationSCP1": (268, 293),
    "SelfRegulationSCP2": (200, 180),
    "SpokenArabicDigits": (6599, 2199),
    "UWaveGestureLibrary": (120, 320),
}
"""Training and test series of the ten sets of Primal-Attention's Table 1, and of the other that comes with aeon.

A file with fewer is cut short, which nothing in it would say.
"""


_NEEDS_AEON = "time series are read by aeon, which is not installed: pip install 'kattn[series]'"
_ENDINGS: dict[SplitName, str] = {"train": "TRAIN", "test": "TEST"}


class Uea(SequenceDataSet):
    """One of the archive's sets, its series padded to the longest.

    Gaps are filled as in :func:`~kattn_cli.data.reading.series_files.without_gaps`. The classes are numbered in the
    order of their names; nothing is normalised here.

    Args:
        set_: its name in the archive.
        root: the folder of ``<set>/<set>_TRAIN.ts`` and ``…_TEST.ts``, or of these themselves; by default
            ``$KATTN_DATA/uea`` or ``~/.cache/kattn/uea``, then what comes with aeon.
    """

    name: ClassVar[str] = "uea"
    description = "30 sets of multivariate time series"
    how_to_get = (
        "kattn data fetch uea set=NAME downloads it; or unpack NAME.zip of https://www.timeseriesclassification.com "
        "and give its folder as root"
    )

    def __init__(self, *, set_: UeaSet = "JapaneseVowels", root: str | None = None) -> None:
        self.set = set_
        self.root = Path(root).expanduser() if root else default_root(self.name)
        self._own_root = root is not None

    def facts(self) -> SequenceFacts:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`; every line is looked over, and no value read."""
        train, test = self._outlines["train"], self._outlines["test"]
        longest = max(*train.lengths, *test.lengths)
        return SequenceFacts(classes=len(set(train.labels)), seq_len=longest, channels=train.channels)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return self._looked_in() if self.missing() else [self._folder()]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if find_spec("aeon") is None:
            return f"data.set: {_NEEDS_AEON}"
        path = next((path for path in self._paths().values() if not path.is_file()), None)
        if path is None:
            return ""
        return f"there is no {path.name} in {' or '.join(map(str, self._looked_in()))}; {self._how_to_get()}"

    def load(self) -> dict[SplitName, SequenceSplit]:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`."""
        outlines = self._outlines
        numbers = {label: number for number, label in enumerate(sorted(set(outlines["train"].labels)))}
        return {
            split: padded(read_series(path), torch.tensor([numbers[label] for label in outlines[split].labels]))
            for split, path in self._paths().items()
        }

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`; instead of a sum, which nobody publishes, what is in them."""
        return [self._check(split, path) for split, path in self._paths().items()]

    def fetch(self) -> None:
        """Download by aeon into ``root/<set>``; a file takes its place only when all of both is there and sound."""
        if find_spec("aeon") is None:
            raise DataError(f"{self.name}: {_NEEDS_AEON}")
        url = f"https://www.timeseriesclassification.com/aeon-toolkit/{self.set}.zip"
        with (
            downloading(f"{self.name}, {self.set}", self.root, f"instead, unpack {url} there"),
            TemporaryDirectory(dir=self.root, prefix=".fetching.") as folder,
        ):
            _download(self.set, folder)
            found = {split: Path(folder) / self.set / self._file(split) for split in _ENDINGS}
            for split, path in found.items():
                self._outline(split, path)
            (self.root / self.set).mkdir(exist_ok=True)
            for path in found.values():
                os.replace(path, self.root / self.set / path.name)

    @cached_property
    def _outlines(self) -> dict[SplitName, Outline]:
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        paths = self._paths()
        found = {split: self._outline(split, path) for split, path in paths.items()}
        train, test = found["train"], found["test"]
        if train.channels != test.channels:
            raise DataError(f"{paths['test']}: channels: {test.channels}, and {train.channels} in {paths['train']}")
        for number, label in enumerate(test.labels, 1):
            if label not in train.labels:
                raise DataError(f'{paths["test"]}, series {number}: no training series is of its class "{label}"')
        return found

    def _outline(self, split: SplitName, path: Path) -> Outline:
        found = outline(path)
        known = SIZES.get(self.set, (0, 0))[0 if split == "train" else 1]
        if (count := len(found.labels)) < known:
            raise DataError(f"{path}: is cut short: it has {count} series, and {self.set} has {known}; get it again")
        return found

    def _check(self, split: SplitName, path: Path) -> FileCheck:
        if not path.is_file():
            return FileCheck(path, "missing")
        try:
            found = self._outline(split, path)
        except DataError as error:
            return FileCheck(path, "wrong checksum", str(error).removeprefix(f"{path}").lstrip(":, "))
        steps = " – ".join(map(str, sorted({min(found.lengths), max(found.lengths)})))
        content = f"{len(found.labels):,} series of {found.channels} channels, {steps} steps"
        return FileCheck(path, "no checksum known", content)

    def _paths(self) -> dict[SplitName, Path]:
        """Return each file where it lies, or else where it is looked for first."""
        folder = self._folder()
        return {split: folder / self._file(split) for split in _ENDINGS}

    def _folder(self) -> Path:
        """Return the folder that has most of the files."""
        return max(self._looked_in(), key=self._files_in)

    def _files_in(self, folder: Path) -> int:
        return sum((folder / self._file(split)).is_file() for split in _ENDINGS)

    def _file(self, split: SplitName) -> str:
        return f"{self.set}_{_ENDINGS[split]}.ts"

    def _looked_in(self) -> list[Path]:
        places = [self.root / self.set, self.root]
        aeon = None if self._own_root else find_spec("aeon")
        return [*places, Path(aeon.origin).parent / "datasets" / "data" / self.set] if aeon and aeon.origin else places

    def _how_to_get(self) -> str:
        return self.how_to_get.replace("NAME", self.set)


def _download(name: str, folder: str) -> None:
    """Let aeon download ``name`` into ``folder``.

    Raises:
        RuntimeError: in one line, whatever fails: aeon raises nearly anything, its own and its libraries' errors.
    """
    try:
        from aeon.datasets import load_classification

        load_classification(name, split="train", extract_path=folder)
    except Exception as error:
        raise RuntimeError(in_one_line(error)) from None
