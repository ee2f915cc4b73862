"""Data sets, one file each, as a recipe names them."""

from __future__ import annotations

from kattn_cli.data.cifar10 import Cifar10
from kattn_cli.data.cifar100 import Cifar100
from kattn_cli.data.dataset import DataSet
from kattn_cli.data.digits import Digits
from kattn_cli.data.fashion_mnist import FashionMnist
from kattn_cli.data.files import FileSplit
from kattn_cli.data.flowers102 import Flowers102
from kattn_cli.data.holdout import DEFAULT_SHARE, hold_out
from kattn_cli.data.huggingface import HuggingFace
from kattn_cli.data.imagefolder import ImageFolder
from kattn_cli.data.images import ImageData, MemorySplit, Split, SplitName
from kattn_cli.data.mnist import Mnist
from kattn_cli.data.pets import Pets
from kattn_cli.data.statistics import channel_statistics
from kattn_cli.errors import DataError
from kattn_cli.options import arguments
from kattn_cli.recipe_data import Data

__all__ = ["DATASETS", "FileSplit", "ImageData", "MemorySplit", "Split", "SplitName", "data_set", "load_data"]

DATASETS: dict[str, type[DataSet]] = {
    "digits": Digits,
    "mnist": Mnist,
    "fashion_mnist": FashionMnist,
    "cifar10": Cifar10,
    "cifar100": Cifar100,
    "flowers102": Flowers102,
    "pets": Pets,
    "imagefolder": ImageFolder,
    "huggingface": HuggingFace,
}


def data_set(data: Data) -> DataSet:
    """The data set that ``data`` names, with its options; both are sound.

    Raises:
        DataError: if its constructor refuses options that do not go together, in its own words.
    """
    cls = DATASETS[data.name]
    try:
        return cls(**arguments(cls, data.options))
    except ValueError as error:
        raise DataError(f"{data.name}: {error}") from error


def load_data(data: Data) -> ImageData:
    """The splits that ``data`` asks for, all of one image size.

    With ``choose_on: test`` the split named ``validation`` is the test split: nothing is held out of the training
    images, and a validation split of the data set's own goes unused.

    Raises:
        DataError: if files are missing or damaged, or are other than ``data`` counts on.
    """
    source = data_set(data)
    facts = source.facts()
    size = data.image_size or facts.image_size
    if size is None:
        raise DataError(f"{data.name}: its images vary in size; give data.image_size, such as 224")
    channels = data.channels if data.channels and source.any_channels else facts.channels
    splits = source.load(data, size)
    for name, split in splits.items():
        _check_labels(f"{data.name}, {name} split", split, facts.classes)
    splits = {name: _of_size(split, size) for name, split in _with_validation(splits, data).items()}
    mean, std = channel_statistics(splits["train"], channels)
    chosen_on: SplitName = data.choose_on
    return ImageData(data.name, facts.classes, channels, size, mean, std, splits, chosen_on, lambda: source.corrupt)


def _check_labels(what: str, split: Split, classes: int) -> None:
    if len(split) == 0:
        raise DataError(f"{what}: there are no images")
    for label in (int(split.labels.min()), int(split.labels.max())):
        if not 0 <= label < classes:
            raise DataError(f"{what}: has a label {label}, and there are {classes} classes: 0 … {classes - 1}")


def _with_validation(splits: dict[SplitName, Split], data: Data) -> dict[SplitName, Split]:
    if data.choose_on == "test":
        return {"train": splits["train"], "validation": splits["test"], "test": splits["test"]}
    if "validation" in splits:
        return splits
    kept, held_out = hold_out(splits["train"].labels, data.validation or DEFAULT_SHARE)
    if len(held_out) == 0:
        raise DataError(f"{data.name}: no class has two training images, so that none can be held out to choose by")
    train = splits["train"]
    return {"train": train.subset(kept), "validation": train.subset(held_out), "test": splits["test"]}


def _of_size(split: Split, size: int) -> Split:
    if not isinstance(split, MemorySplit) or split.images.shape[-2:] == (size, size):
        return split
    return split.resized(size)
