"""Images in one folder a class, as ImageNet's: ``root/train/<class>/*.JPEG`` and ``root/val/<class>/*.JPEG``.

Hidden files and folders are passed over. Files of a class may lie in folders of their own below it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import torch
from torchvision.datasets.folder import IMG_EXTENSIONS

from kattn_cli.data.dataset import Facts, FileCheck
from kattn_cli.data.images import Split, SplitName
from kattn_cli.data.reading.encoded import Paths, paths_of
from kattn_cli.data.reading.files import FileDataSet
from kattn_cli.errors import DataError, did_you_mean
from kattn_cli.recipe.data import ImageSection


class ImageFolder(FileDataSet):
    """Images in one folder a class.

    Args:
        root: where the folders of the splits lie.
        train: the training images, below ``root``.
        test: the images to report on, below ``root``; ImageNet's ``val``.
        validation_folder: images to choose the best epoch by, below ``root``, where they have a folder of their own.
        class_list: a text file with the name of one class folder a line, in the order of the labels, for some of the
            classes only (ImageNet-100 of ImageNet-1K); blank lines, and what follows a ``#``, do not count. By default
            all folders of ``train``, sorted.
        in_memory: see :class:`~kattn_cli.data.reading.files.FileDataSet`.
    """

    name = "imagefolder"
    description = "images of your own, one folder a class; ImageNet's layout"
    how_to_get = "give data.root, a folder with train/<class>/*.JPEG and val/<class>/*.JPEG"
    path_options = ("root", "class_list")

    def __init__(
        self,
        *,
        root: str,
        train: str = "train",
        test: str = "val",
        validation_folder: str | None = None,
        class_list: str | None = None,
        in_memory: bool | None = None,
    ) -> None:
        super().__init__(in_memory)
        self.root = Path(root).expanduser()
        self.class_list = Path(class_list).expanduser() if class_list else None
        self.folders: dict[SplitName, str] = {"train": train, "test": test}
        if validation_folder:
            self.folders["validation"] = validation_folder

    def facts(self) -> Facts:
        """See :class:`~kattn_cli.data.dataset.DataSet`; images are taken to be in colour."""
        self.require()
        return Facts(
            classes=len(self._classes()), channels=3, image_size=None, own_validation="validation" in self.folders
        )

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if not self.root.is_dir():
            return f"data.root: {self.root} is not a folder; {self.how_to_get}"
        for split, folder in self.folders.items():
            if not (self.root / folder).is_dir():
                beside = sorted(entry.name for entry in os.scandir(self.root) if entry.is_dir())
                hint = did_you_mean(folder, beside) or f"; {self.root} has {', '.join(beside[:5]) or 'no folders'}"
                return f"data.{_KEYS[split]}: {self.root / folder} is not a folder{hint}"
        if self.class_list and not self.class_list.is_file():
            return f"data.class_list: {self.class_list} is not a file; give one with a class folder's name a line"
        return ""

    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        """See :class:`~kattn_cli.data.dataset.DataSet`; ``data.channels`` says whether to read grey values.

        Raises:
            DataError: also if a class has no folder or no images.
        """
        self.require()
        classes = self._classes()
        parts = {split: _scan(self.root / folder, classes) for split, folder in self.folders.items()}
        return self.split_up(parts, data, image_size)

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`: one line a split."""
        return [_check(self.root / folder) for folder in self.folders.values()]

    def fetch(self) -> None:
        """See :class:`~kattn_cli.data.dataset.DataSet`: there is nothing to fetch."""
        raise DataError(f"imagefolder: these are images of your own, which cannot be fetched; {self.how_to_get}")

    def _classes(self) -> list[str]:
        """Return the class folders in the order of their labels, which every split has."""
        there = {split: class_folders(self.root / folder) for split, folder in self.folders.items()}
        if self.class_list:
            listed = read_class_list(self.class_list)
            for split, names in there.items():
                for name in listed:
                    if name not in names:
                        folder = self.root / self.folders[split]
                        raise DataError(f"{self.class_list}: {folder} has no class {name}{did_you_mean(name, names)}")
            return listed
        for split, names in there.items():
            if different := sorted(set(names) ^ set(there["train"])):
                name = different[0]
                ends: tuple[SplitName, SplitName] = ("train", split) if name in there["train"] else (split, "train")
                has, lacks = (self.root / self.folders[end] for end in ends)
                hint = did_you_mean(name, set(there[ends[1]]) - set(there[ends[0]]))
                raise DataError(
                    f"{has} has a class {name} and {lacks} has not{hint or '; data.class_list chooses among classes'}"
                )
        return there["train"]


_KEYS: dict[SplitName, str] = {"train": "train", "test": "test", "validation": "validation_folder"}


def class_folders(folder: Path) -> list[str]:
    """Return the names of the folders in a folder, sorted.

    Raises:
        DataError: if there are fewer than two.
    """
    names = sorted(entry.name for entry in os.scandir(folder) if not entry.name.startswith(".") and entry.is_dir())
    if len(names) < 2:
        raise DataError(
            f"{folder} has {len(names) or 'no'} class folder{'s' * (not names)}; it needs one for each class"
        )
    return names


def read_class_list(path: Path) -> list[str]:
    """Return the names in a class list.

    Raises:
        DataError: if it cannot be read, a name comes twice, or there are fewer than two.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path} cannot be read as a list of classes: {error}") from error
    numbers: dict[str, int] = {}
    for number, line in enumerate(lines, 1):
        if name := line.partition("#")[0].strip():
            if name in numbers:
                raise DataError(f"{path}, line {number}: {name} is there already, in line {numbers[name]}")
            numbers[name] = number
    if len(numbers) < 2:
        raise DataError(f"{path}: a list of classes needs two or more, one a line")
    return list(numbers)


def images_below(folder: str) -> Iterator[str]:
    """Return the paths of all images in a folder and the folders in it, in no order."""
    for entry in os.scandir(folder):
        if entry.name.startswith("."):
            continue
        if entry.name.lower().endswith(IMG_EXTENSIONS):
            yield entry.path
        elif entry.is_dir():
            yield from images_below(entry.path)


def _scan(folder: Path, classes: list[str]) -> tuple[Paths, torch.Tensor]:
    paths: list[str] = []
    counts = []
    for name in classes:
        found = sorted(images_below(os.path.join(folder, name)))
        if not found:
            raise DataError(f"{folder / name} has no images ({', '.join(IMG_EXTENSIONS)}); remove it, or fill it")
        paths += found
        counts.append(len(found))
    labels = torch.repeat_interleave(torch.arange(len(classes)), torch.tensor(counts))
    return paths_of(paths), labels


def _check(folder: Path) -> FileCheck:
    if not folder.is_dir():
        return FileCheck(folder, "missing")
    classes = sum(entry.is_dir() for entry in os.scandir(folder))
    images = sum(1 for _ in images_below(str(folder)))
    return FileCheck(folder, "no checksum known", f"{images:,} images in {classes:,} folders")
