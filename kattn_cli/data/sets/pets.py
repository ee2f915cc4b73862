"""Oxford-IIIT Pets (Parkhi et al., 2012, https://www.robots.ox.ac.uk/~vgg/data/pets/).

37 breeds of cats and dogs; 3,680 images to train on (torchvision's ``trainval``), 3,669 to test.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.datasets import OxfordIIITPet as Torchvision

from kattn_cli.data.dataset import Facts, FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.encoded import Paths, paths_of
from kattn_cli.data.reading.torchvision_files import TorchvisionFiles, check_images
from kattn_cli.errors import DataError

_IMAGES = 7_390
_SPLITS: dict[SplitName, str] = {"train": "trainval", "test": "test"}


class Pets(TorchvisionFiles):
    """See above, and TorchvisionFiles for the options; torchvision's folder is ``oxford-iiit-pet``."""

    name = "pets"
    description = "7,349 photographs of cats and dogs"
    how_to_get = (
        "kattn data fetch pets downloads it, and so does download: true; "
        "or unpack images.tar.gz and annotations.tar.gz into oxford-iiit-pet and give its folder as root"
    )
    base_folder = "oxford-iiit-pet"
    needed = ("images", "annotations/trainval.txt", "annotations/test.txt")

    def facts(self) -> Facts:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return Facts(classes=37, channels=3, image_size=None)

    def read(self) -> dict[SplitName, tuple[Paths, Tensor]]:
        """See TorchvisionFiles."""
        parts = {}
        for split, name in _SPLITS.items():
            try:
                images = Torchvision(str(self.root), split=name)
            except ValueError as error:
                damaged = self.folder / "annotations" / f"{name}.txt"
                raise DataError(f"{damaged}: is cut short or damaged; remove it and get it again") from error
            parts[split] = paths_of([str(path) for path in images._images]), torch.tensor(images._labels)
        return parts

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`; the archive's sum is checked as it is downloaded."""
        lists = [self.folder / "annotations" / f"{name}.txt" for name in _SPLITS.values()]
        checks = [FileCheck(path, "no checksum known" if path.is_file() else "missing") for path in lists]
        return [check_images(self.folder / "images", _IMAGES), *checks]

    def download_all(self) -> None:
        """See TorchvisionFiles."""
        Torchvision(str(self.root), download=True)
