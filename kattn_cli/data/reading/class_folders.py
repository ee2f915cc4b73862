"""Folders of images laid out as ImageNet-A, -R and -O or as ImageNet-C, to evaluate a model of their classes on.

``PATH/<class>/*`` or ``PATH/<corruption>/<severity>/<class>/*``. Hidden files and folders are passed over.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from kattn_cli.data import data_set
from kattn_cli.data.dataset import ImageDataSet
from kattn_cli.data.images import ImageData
from kattn_cli.data.reading.encoded import Corruption, paths_of
from kattn_cli.data.reading.files import FileSplit
from kattn_cli.data.sets.cifar10 import Cifar10
from kattn_cli.data.sets.imagefolder import ImageFolder, class_folders, images_below, read_class_list
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection

SEVERITIES = ("1", "2", "3", "4", "5")


@dataclass(frozen=True)
class ClassFolders:
    """One folder with a subfolder for each of some classes.

    ``labels``: the label of each folder in ``path``, by its name; all 0 where ``known`` is false, for folders of
    which none is a class of the data set. ``corruption`` and ``severity`` are empty and 0 but in ImageNet-C's layout.
    """

    path: Path
    labels: Mapping[str, int]
    known: bool
    corruption: str = ""
    severity: int = 0

    @property
    def classes(self) -> torch.Tensor:
        """``(k,)`` int64: the labels of its classes, in ascending order; none where they are not known."""
        return torch.tensor(sorted(self.labels.values()) if self.known else [], dtype=torch.int64)

    def split(self, data: ImageSection, loaded: ImageData) -> FileSplit:
        """Return its images as those of ``data`` are evaluated: size, crop and channels.

        Nothing is cropped where the images of ``data`` are of one size.

        Raises:
            DataError: if a class has no images.
        """
        paths: list[str] = []
        labels: list[int] = []
        for name, label in self.labels.items():
            found = sorted(images_below(str(self.path / name)))
            if not found:
                raise DataError(f"{self.path / name} has no images; remove it, or fill it")
            paths += found
            labels += [label] * len(found)
        return FileSplit(
            encoded=paths_of(paths),
            rows=torch.arange(len(paths)),
            targets=torch.tensor(labels, dtype=torch.int64),
            image_size=loaded.image_size,
            crop_pct=1.0 if _image_data_set(data).facts().image_size else data.crop_pct,
            channels=loaded.channels,
            workers=data.workers,
            corruption=Corruption(data.max_corrupt),
        )


def read_class_folders(path: Path, names: Sequence[Mapping[str, int]]) -> list[ClassFolders]:
    """Return what ``path`` holds: one folder, or in ImageNet-C's layout one for each corruption and severity.

    Args:
        path: the folder.
        names: see :func:`class_names`.

    Raises:
        DataError: if it is no folder, has no class folders, or only some of them are classes of the data set.
    """
    if not path.is_dir():
        raise DataError(f"{path} is not a folder; expected one with a folder of images for each class")
    inside = _folders(path)
    if not inside:
        raise DataError(f"{path} has no class folders; expected <class>/* or <corruption>/<severity>/<class>/*")
    if not all(_has_severities(path / name) for name in inside):
        return [_matched(path, names)]
    found = []
    for name in inside:
        for severity in _folders(path / name):
            one = _matched(path / name / severity, names)
            if not one.known:
                first = next(iter(one.labels))
                raise DataError(f"{one.path}: {first} is no class of the data set; {_some(names)}")
            found.append(ClassFolders(one.path, one.labels, True, name, int(severity)))
    return found


def class_names(data: ImageSection) -> list[dict[str, int]]:
    """Return the names that a class folder may have, with their labels; any of these lists of names will do.

    For ``imagefolder`` the folders of its own; for CIFAR its names, or the label's number; for all others the number.
    """
    source = _image_data_set(data)
    if isinstance(source, ImageFolder):
        own = source.class_list
        return [_numbered(read_class_list(own) if own else class_folders(source.root / source.folders["train"]))]
    numbers = _numbered([str(label) for label in range(source.facts().classes)])
    if isinstance(source, Cifar10):
        return [_numbered(source.torchvision_class(source.root, train=False).classes), numbers]
    return [numbers]


def _image_data_set(data: ImageSection) -> ImageDataSet:
    source = data_set(data)
    assert isinstance(source, ImageDataSet)
    return source


def _numbered(names: Sequence[str]) -> dict[str, int]:
    return {name: label for label, name in enumerate(names)}


def _folders(path: Path) -> list[str]:
    return sorted(entry.name for entry in os.scandir(path) if not entry.name.startswith(".") and entry.is_dir())


def _has_severities(path: Path) -> bool:
    inside = _folders(path)
    return bool(inside) and set(inside) <= set(SEVERITIES) and all(_folders(path / name) for name in inside)


def _matched(path: Path, names: Sequence[Mapping[str, int]]) -> ClassFolders:
    inside = _folders(path)
    if not inside:
        raise DataError(f"{path} has no class folders")
    labels = max(names, key=lambda one: len(one.keys() & set(inside)))
    unknown = [name for name in inside if name not in labels]
    if len(unknown) == len(inside):
        return ClassFolders(path, dict.fromkeys(inside, 0), known=False)
    if unknown:
        near = difflib.get_close_matches(unknown[0], labels, n=1, cutoff=0)
        raise DataError(
            f"{path}: has a folder {unknown[0]}, which is no class of the data set (the nearest is {near[0]}), and "
            f"others that are; all of them must be classes, or none"
        )
    if len(inside) < 2:
        raise DataError(f"{path} has one class folder, {inside[0]}; among one class every answer is right")
    return ClassFolders(path, {name: labels[name] for name in inside}, known=True)


def _some(names: Sequence[Mapping[str, int]]) -> str:
    return f"its classes are called {', '.join(list(names[0])[:3])} and so on"
