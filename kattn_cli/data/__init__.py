"""Data sets, one file each, as a recipe names them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, overload

from kattn_cli.data.corpora import Lambada, OpenWebText, PennTreebank, Text, WikiText2, WikiText103
from kattn_cli.data.dataset import Corpus, DataSet, ImageDataSet, SequenceDataSet
from kattn_cli.data.holdout import DEFAULT_SHARE, hold_out
from kattn_cli.data.images import ImageData, MemorySplit, Split, SplitName, channel_statistics
from kattn_cli.data.reading.files import FileSplit
from kattn_cli.data.segmentation import MaskSplit, SegmentationData, SegmentationDataSet, load_segmentation
from kattn_cli.data.sequences import SequenceData, SequenceSplit, channel_moments
from kattn_cli.data.sets.aan import Aan
from kattn_cli.data.sets.ade20k import Ade20k
from kattn_cli.data.sets.cifar10 import Cifar10
from kattn_cli.data.sets.cifar100 import Cifar100
from kattn_cli.data.sets.d4rl import D4rl
from kattn_cli.data.sets.digits import Digits
from kattn_cli.data.sets.fashion_canvases import FashionCanvases
from kattn_cli.data.sets.fashion_mnist import FashionMnist
from kattn_cli.data.sets.flowers102 import Flowers102
from kattn_cli.data.sets.huggingface import HuggingFace
from kattn_cli.data.sets.imagefolder import ImageFolder
from kattn_cli.data.sets.listops import ListOps
from kattn_cli.data.sets.minari import Minari
from kattn_cli.data.sets.mnist import Mnist
from kattn_cli.data.sets.pathfinder import Pathfinder
from kattn_cli.data.sets.pets import Pets
from kattn_cli.data.sets.pixels import Pixels
from kattn_cli.data.sets.sentences import Imdb, Sst2, Sst5
from kattn_cli.data.sets.uea import Uea
from kattn_cli.data.text import TextData, TokenSplit
from kattn_cli.data.trajectories import TrajectoryData, TrajectorySet, load_trajectories
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import DataSection, ImageSection, SegmentationSection
from kattn_cli.recipe.options import arguments

__all__ = [
    "DATASETS",
    "FileSplit",
    "ImageData",
    "LoadedData",
    "MaskSplit",
    "MemorySplit",
    "SegmentationData",
    "SequenceData",
    "SequenceSplit",
    "Split",
    "SplitName",
    "TextData",
    "TokenSplit",
    "TrajectoryData",
    "data_set",
    "load_data",
]

LoadedData = ImageData | SegmentationData | SequenceData | TextData | TrajectoryData
AnySplit = TypeVar("AnySplit", Split, SequenceSplit)

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
    "uea": Uea,
    "listops": ListOps,
    "pathfinder": Pathfinder,
    "aan": Aan,
    "pixels": Pixels,
    "ade20k": Ade20k,
    "fashion_canvases": FashionCanvases,
    "sst2": Sst2,
    "sst5": Sst5,
    "imdb": Imdb,
    "text": Text,
    "wikitext2": WikiText2,
    "wikitext103": WikiText103,
    "ptb": PennTreebank,
    "openwebtext": OpenWebText,
    "lambada": Lambada,
    "d4rl": D4rl,
    "minari": Minari,
}


def data_set(data: DataSection) -> DataSet:
    """The data set that ``data`` names, with its options; both are sound.

    Raises:
        DataError: if its constructor refuses options that do not go together, in its own words.
    """
    cls = DATASETS[data.name]
    try:
        return cls(**arguments(cls, data.options))
    except ValueError as error:
        raise DataError(f"{data.name}: {error}") from error


@overload
def load_data(data: ImageSection) -> ImageData: ...


@overload
def load_data(data: DataSection) -> LoadedData: ...


def load_data(data: DataSection) -> LoadedData:
    """The splits that ``data`` asks for.

    With ``choose_on: test`` the split named ``validation`` is the test split: nothing is held out of the training
    samples, and a validation split of the data set's own goes unused.

    Raises:
        DataError: if files are missing or damaged, or are other than ``data`` counts on.
    """
    source = data_set(data)
    if isinstance(source, Corpus):
        return _load_text(source, data)
    if isinstance(source, SequenceDataSet):
        return _load_sequences(source, data)
    if isinstance(source, SegmentationDataSet):
        assert isinstance(data, SegmentationSection)
        return load_segmentation(source, data)
    if isinstance(source, TrajectorySet):
        return load_trajectories(source, data)
    assert isinstance(source, ImageDataSet)
    assert isinstance(data, ImageSection)
    return _load_images(source, data)


def _load_images(source: ImageDataSet, data: ImageSection) -> ImageData:
    """All of one image size."""
    facts = source.facts()
    size = data.image_size or facts.image_size
    if size is None:
        raise DataError(f"{data.name}: its images vary in size; give data.image_size, such as 224")
    channels = data.channels if data.channels and source.any_channels else facts.channels
    found = source.load(data, size)
    _check_labels(data.name, found, facts.classes, ImageData.unit)
    splits = {name: _of_size(split, size) for name, split in _with_validation(found, data).items()}
    mean, std = channel_statistics(splits["train"], channels)
    chosen_on: SplitName = data.choose_on
    return ImageData(data.name, facts.classes, channels, size, mean, std, splits, chosen_on, lambda: source.corrupt)


def _load_sequences(source: SequenceDataSet, data: DataSection) -> SequenceData:
    found = source.load()
    facts = source.facts()
    _check_labels(data.name, found, facts.classes, SequenceData.unit)
    splits = _with_validation(found, data)
    mean, std = channel_moments(splits["train"]) if facts.channels else ((), ())
    return SequenceData(
        name=data.name,
        classes=facts.classes,
        seq_len=facts.seq_len,
        channels=facts.channels,
        vocabulary_size=facts.vocabulary,
        pairs=facts.pairs,
        mean=mean,
        std=std,
        splits=splits,
        chosen_on=data.choose_on,
        vocabulary=source.vocabulary(),
    )


def _load_text(source: Corpus, data: DataSection) -> TextData:
    vocabulary, splits = source.load()
    if data.choose_on == "test":
        splits = {**splits, "validation": splits["test"]}
    return TextData(data.name, vocabulary, source.context, splits, data.choose_on)


def _check_labels(name: str, splits: Mapping[SplitName, Any], classes: int, unit: str) -> None:
    for split_name, split in splits.items():
        what = f"{name}, {split_name} split"
        if len(split) == 0:
            raise DataError(f"{what}: there are no {unit}")
        for label in (int(split.labels.min()), int(split.labels.max())):
            if not 0 <= label < classes:
                raise DataError(f"{what}: has a label {label}, and there are {classes} classes: 0 … {classes - 1}")


def _with_validation(splits: dict[SplitName, AnySplit], data: DataSection) -> dict[SplitName, AnySplit]:
    if data.choose_on == "test":
        return {"train": splits["train"], "validation": splits["test"], "test": splits["test"]}
    if "validation" in splits:
        return splits
    train: Any = splits["train"]
    kept, held_out = hold_out(train.labels, data.validation or DEFAULT_SHARE)
    if len(held_out) == 0:
        raise DataError(f"{data.name}: no class has two training samples, so that none can be held out to choose by")
    return {"train": train.subset(kept), "validation": train.subset(held_out), "test": splits["test"]}


def _of_size(split: Split, size: int) -> Split:
    if not isinstance(split, MemorySplit) or split.images.shape[-2:] == (size, size):
        return split
    return split.resized(size)
