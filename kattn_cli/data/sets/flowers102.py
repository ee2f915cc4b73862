"""Oxford 102 Flowers (Nilsback & Zisserman, 2008, https://www.robots.ox.ac.uk/~vgg/data/flowers/102/).

102 classes; 1,020 images to train on, 1,020 for validation, 6,149 to test.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torchvision.datasets import Flowers102 as Torchvision

from kattn_cli.data.dataset import Facts, FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.encoded import Paths, paths_of
from kattn_cli.data.reading.torchvision_files import TorchvisionFiles, check_images, check_md5
from kattn_cli.errors import DataError

_IMAGES = 8_189
_SPLITS: dict[SplitName, str] = {"train": "train", "validation": "val", "test": "test"}


class Flowers102(TorchvisionFiles):
    """See above, and TorchvisionFiles for the options; torchvision's folder is ``flowers-102``."""

    name = "flowers102"
    description = "8,189 photographs of flowers, with a validation split of its own"
    how_to_get = (
        "kattn data fetch flowers102 downloads it, and so does download: true; "
        "or unpack 102flowers.tgz into flowers-102, with imagelabels.mat and setid.mat, and give its folder as root"
    )
    base_folder = "flowers-102"
    needed = ("jpg", "imagelabels.mat", "setid.mat")

    def facts(self) -> Facts:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return Facts(classes=102, channels=3, image_size=None, own_validation=True)

    def read(self) -> dict[SplitName, tuple[Paths, Tensor]]:
        """See TorchvisionFiles."""
        parts = {}
        for split, name in _SPLITS.items():
            try:
                images = Torchvision(str(self.root), split=name)
            except RuntimeError:
                damaged = next((check.path for check in self._lists() if check.status != "ok"), self.folder)
                raise DataError(f"{damaged}: is cut short or damaged; remove it and get it again") from None
            parts[split] = paths_of([str(path) for path in images._image_files]), torch.tensor(images._labels)
        return parts

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [check_images(self.folder / "jpg", _IMAGES), *self._lists()]

    def download_all(self) -> None:
        """See TorchvisionFiles."""
        Torchvision(str(self.root), download=True)

    def _lists(self) -> list[FileCheck]:
        sums = [Torchvision._file_dict[key] for key in ("label", "setid")]
        return [check_md5(self.folder / name, md5) for name, md5 in sums]
