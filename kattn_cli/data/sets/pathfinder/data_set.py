"""Pathfinder (Linsley et al., 2018, https://arxiv.org/abs/1805.08315), as in Long-Range Arena (Tay et al., 2021).

Two of a picture's contours of dashes have a disc at an end each, or one of them has both: class 1. Long-Range Arena's
Pathfinder is 32 × 32 = 1,024 grey values and its Path-X 128 × 128 = 16,384, both with contours of 14 dashes (its
"hard", as its issue 11 says), 200,000 pictures, of which 80 % are to train on, 10 % for validation and 10 % to test.

As in Linsley's program, with Long-Range Arena's values for each size (:mod:`.scene`): the contours, how they turn,
where they begin, distractors of a third of their length, the discs, and that the contours are drawn before the label
(:mod:`.snakes`). Ours: half of the pictures are of each class, exactly; contours that run into a dead end go back
(his begin anew); no dash of another contour comes nearer than twice the gap, whatever the pixel grid; discs touch no
other dash and no distractor; Pillow's lines and discs, averaged over 8 × 8 to a pixel (his Lanczos over 2 × 2 or
4 × 4). Of about five short contours in a picture of 32 × 32 half find room.

The arrangement depends on the options alone, whatever the machine, as long as numpy's generators stay as they are; the
shades of grey depend on Pillow's way of drawing, too.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import numpy as np
import torch
from pydantic import Field

from kattn_cli.data.dataset import NOT_GENERATED, FileCheck, SequenceDataSet, SequenceFacts
from kattn_cli.data.images import SPLITS, SplitName
from kattn_cli.data.reading.storage import default_root, kept, stamp_of
from kattn_cli.data.sequences import SequenceSplit
from kattn_cli.data.sets.pathfinder.files import DIFFICULTIES, folder_of, listed, metadata_files, rows
from kattn_cli.data.sets.pathfinder.generate import VERSION, Wanted, read_rows, write, write_rows
from kattn_cli.errors import DataError

Count = Annotated[int, Field(ge=2)]
GREYS = 256


class Pathfinder(SequenceDataSet):
    """Pictures as sequences of grey values, row by row; class 1 if one contour connects the two discs.

    Args:
        root: the folder of Long-Range Arena's ``pathfinder32``, ``pathfinder64`` and ``pathfinder128``, or one of
            these. Then nothing is generated, and of the other options only ``size`` and ``contour_length`` count.
            Its pictures are cut 80 : 10 : 10 in the order of its lists; which are in Long-Range Arena's own splits
            only tensorflow-datasets knows.
        size: height and width.
        contour_length: dashes of a long contour; 6, 9 and 14 are Long-Range Arena's easy, intermediate and hard.
        train: how many pictures to train on.
        choose_by: how many to choose the best epoch by.
        test: how many to report on.
        seed: another one, other pictures.
    """

    name = "pathfinder"
    description = "two discs among dashed contours, of Long-Range Arena, generated"
    how_to_get = "without root it is generated; Long-Range Arena's lra_release has its own pictures"

    def __init__(
        self,
        *,
        root: str | None = None,
        size: Literal[32, 64, 128] = 32,
        contour_length: Annotated[int, Field(ge=3, le=30)] = 14,
        train: Count = 160_000,
        choose_by: Count = 20_000,
        test: Count = 20_000,
        seed: Annotated[int, Field(ge=0)] = 0,
    ) -> None:
        if root and contour_length not in DIFFICULTIES:
            raise ValueError(
                f"data.contour_length: Long-Range Arena has pictures of {', '.join(map(str, DIFFICULTIES))}, not of "
                f"{contour_length}; leave out data.root to generate them"
            )
        self.root = Path(root).expanduser() if root else None
        self.size, self.contour_length, self.seed = size, contour_length, seed
        self.counts: dict[SplitName, int] = {"train": train, "validation": choose_by, "test": test}

    def facts(self) -> SequenceFacts:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`."""
        return SequenceFacts(2, seq_len=self.size**2, vocabulary=GREYS, own_validation=True)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root or default_root(self.name)]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`; nothing ever is that can be generated."""
        if self._folder is None or metadata_files(self._folder):
            return ""
        return f"there is no file {self._folder / 'metadata' / '0.npy'}; {self.how_to_get}"

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`; of Long-Range Arena's own, the lists of pictures."""
        if self._folder:
            found = metadata_files(self._folder)
            missing = [FileCheck(self._folder / "metadata" / "0.npy", "missing")]
            return [FileCheck(path, "ok") for path in found] or missing
        caches = [self._cache(split) for split in SPLITS]
        return [FileCheck(path, "ok" if path.is_file() else NOT_GENERATED) for path in caches]

    def load(self) -> dict[SplitName, SequenceSplit]:
        """See :class:`~kattn_cli.data.dataset.SequenceDataSet`; generated or decoded first where that is not done."""
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing}")
        return self._decoded(self._folder) if self._folder else {split: self._generated(split) for split in SPLITS}

    def fetch(self) -> None:
        """Generate the data set and keep it."""
        if self.root is None:
            self.load()

    def _generated(self, split: SplitName) -> SequenceSplit:
        count = self.counts[split]
        wanted = Wanted(self.size, self.contour_length, count, SPLITS.index(split), self.seed)
        read, path = (lambda path: read_rows(path, count, self.size)), self._cache(split)
        return _split(kept(path, read, lambda path: write(path, wanted)))

    def _decoded(self, folder: Path) -> dict[SplitName, SequenceSplit]:
        pictures = listed(folder)
        count, size = len(pictures), self.size
        path = default_root(self.name) / f"lra-{size}-{self.contour_length}-{stamp_of(metadata_files(folder))}.npy"
        found = kept(
            path,
            lambda path: read_rows(path, count, size),
            lambda path: write_rows(path, rows(pictures, size), count, size),
        )
        ends = (count * 8 // 10, count * 9 // 10)
        return {split: _split(part) for split, part in zip(SPLITS, np.split(found, ends), strict=True)}

    def _cache(self, split: SplitName) -> Path:
        name = f"v{VERSION}-{self.size}-c{self.contour_length}-{split}{self.counts[split]}-s{self.seed}.npy"
        return default_root(self.name) / name

    @property
    def _folder(self) -> Path | None:
        return folder_of(self.root, self.size, self.contour_length) if self.root else None


def _split(found: np.ndarray) -> SequenceSplit:
    every = torch.from_numpy(found)
    lengths = torch.full((len(every),), every.shape[1] - 1)
    return SequenceSplit(every[:, :-1], lengths, every[:, -1].long())
