"""scikit-learn's digits: 1,797 handwritten digits of 8 × 8 pixels, from the UCI test set. Needs no download.

The split is a rule, not a draw, so that it is the same for ever: within each class, in the file's order,
of every ten images the 1st goes to validation, the 5th and the 10th to the test set, the rest to training:
1,257 to train on, 185 for validation, 355 to test. Writers are not kept apart.
"""

from __future__ import annotations

from pathlib import Path

import sklearn.datasets
import torch

from kattn_cli.data.dataset import Facts, FileCheck, ImageDataSet
from kattn_cli.data.images import MemorySplit, Split, SplitName
from kattn_cli.recipe.data import ImageSection

_TURN: dict[SplitName, tuple[int, ...]] = {
    "train": (1, 2, 3, 5, 6, 7, 8),
    "validation": (0,),
    "test": (4, 9),
}


class Digits(ImageDataSet):
    """See above; ``image_size`` other than 8 resizes."""

    description = "1,797 handwritten digits, bundled with scikit-learn"
    how_to_get = "it comes with scikit-learn: pip install scikit-learn"

    def facts(self) -> Facts:
        """See :class:`DataSet`."""
        return Facts(classes=10, channels=1, image_size=8, own_validation=True)

    def missing(self) -> str:
        """Return an empty string: nothing ever is."""
        return ""

    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        """Load the three splits."""
        bunch = sklearn.datasets.load_digits()
        images = torch.tensor(bunch.images / 16, dtype=torch.float32)[:, None]
        labels = torch.tensor(bunch.target, dtype=torch.int64)
        turn = torch.zeros_like(labels)
        for label in range(10):
            members = labels == label
            turn[members] = torch.arange(int(members.sum())) % 10
        chosen = {name: torch.isin(turn, torch.tensor(turns)) for name, turns in _TURN.items()}
        return {name: MemorySplit(images[mask], labels[mask]) for name, mask in chosen.items()}

    def files(self) -> list[FileCheck]:
        """Return the one file inside scikit-learn."""
        path = Path(sklearn.datasets.__file__).parent / "data" / "digits.csv.gz"
        return [FileCheck(path, "no checksum known" if path.is_file() else "missing")]

    def fetch(self) -> None:
        """Do nothing: the data come with scikit-learn."""
