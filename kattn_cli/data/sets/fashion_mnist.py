"""Fashion-MNIST: 70,000 pictures of clothes in MNIST's format (Xiao, Rasul and Vollgraf, arXiv:1708.07747)."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

import torchvision.datasets

from kattn_cli.data.sets.mnist import Mnist


class FashionMnist(Mnist):
    """Fashion-MNIST, as :class:`Mnist`; without ``root``, Debian's package is looked for too."""

    name = "fashion_mnist"
    description = "70,000 pictures of clothes"
    instead = "apt install dataset-fashion-mnist"
    how_to_get = f"kattn data fetch fashion_mnist downloads it, and so does download: true; or {instead}"
    torchvision_class = torchvision.datasets.FashionMNIST
    elsewhere = (Path("/usr/share/datasets/fashion-mnist"),)
    md5: ClassVar[dict[str, str]] = {
        "train-images-idx3-ubyte": "f4a8712d7a061bf5bd6d2ca38dc4d50a",
        "train-labels-idx1-ubyte": "9018921c3c673c538a1fc5bad174d6f9",
        "t10k-images-idx3-ubyte": "8181f5470baa50b63fa0f6fddb340f0a",
        "t10k-labels-idx1-ubyte": "15d484375f8d13e6eb1aabb0c3f46965",
    }
