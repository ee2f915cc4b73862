"""Data sets, one file each, as a recipe names them."""

from __future__ import annotations

from collections.abc import Mapping

from kattn_cli.data.corpora import Lambada, OpenWebText, PennTreebank, Text, WikiText2, WikiText103
from kattn_cli.data.dataset import DataSet
from kattn_cli.data.images import ImageData, MemorySplit, Split, SplitName
from kattn_cli.data.loaded import LoadedData
from kattn_cli.data.reading.files import FileSplit
from kattn_cli.data.segmentation import MaskSplit, SegmentationData
from kattn_cli.data.sequences import SequenceData, SequenceSplit
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
from kattn_cli.data.sets.recall import Recall
from kattn_cli.data.sets.sentences import Imdb, Sst2, Sst5
from kattn_cli.data.sets.uea import Uea
from kattn_cli.data.text import TextData, TokenSplit
from kattn_cli.data.trajectories import TrajectoryData
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import DataSection
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
]

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
    "recall": Recall,
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


def data_set(data: DataSection, known: Mapping[str, type[DataSet]] = DATASETS) -> DataSet:
    """Return the data set that ``data`` names among the ``known`` ones, with its options; both are sound.

    Raises:
        DataError: if its constructor refuses options that do not go together, in its own words.
    """
    cls = known[data.name]
    try:
        return cls(**arguments(cls, data.options))
    except ValueError as error:
        raise DataError(f"{data.name}: {error}") from error
