"""CIFAR-100: 60,000 photographs of 32 × 32 in 100 classes, the fine labels (Krizhevsky, 2009)."""

from __future__ import annotations

import torchvision.datasets

from kattn_cli.data.sets.cifar10 import Cifar10


class Cifar100(Cifar10):
    """CIFAR-100, as :class:`Cifar10`; the folder is ``cifar-100-python``."""

    name = "cifar100"
    description = "60,000 small photographs"
    instead = "unpack cifar-100-python.tar.gz and give its folder as root"
    how_to_get = f"kattn data fetch cifar100 downloads it, and so does download: true; or {instead}"
    torchvision_class = torchvision.datasets.CIFAR100
    classes = 100
