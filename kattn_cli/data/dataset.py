"""The interface of data sets: one class, one file; the options are its constructor's keyword arguments.

Of images, of sequences that are classified (series, tokens), or of running text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from kattn_cli.data.images import Split, SplitName
from kattn_cli.data.sequences import SequenceSplit
from kattn_cli.data.text import TextSplits
from kattn_cli.data.vocabulary import Vocabulary
from kattn_cli.recipe.data import DataSection, ImageSection, SequenceSection


@dataclass(frozen=True)
class Facts:
    """The facts known of a data set before its images are read; ``image_size`` is None where it varies.

    ``own_validation``: whether it comes with a validation split, so that nothing is held out of its training images.
    """

    classes: int
    channels: int
    image_size: int | None
    own_validation: bool = False


@dataclass(frozen=True)
class SequenceFacts:
    """The facts known of a data set of sequences before training.

    ``seq_len``: of the longest. A series has ``channels``, a sequence of tokens ``vocabulary`` of them, and the other
    is 0. With ``pairs`` a sample is two sequences, classified together; with ``queries`` each of so many last tokens
    has a class of its own. ``own_validation``: see :class:`Facts`.
    """

    classes: int
    seq_len: int
    channels: int = 0
    vocabulary: int = 0
    pairs: bool = False
    own_validation: bool = False
    queries: int = 0


NOT_GENERATED = "not generated yet"


@dataclass(frozen=True)
class FileCheck:
    """One file of a data set: where it was looked for, and what was found.

    ``status``: ``ok``, ``missing``, ``not generated yet``, ``wrong checksum`` or ``no checksum known``; ``detail``: its
    sum or its content.
    """

    path: Path
    status: str
    detail: str = ""


class DataSet(ABC):
    """A data set, on disk, inside a package, or generated.

    Subclasses take their own options as keyword arguments with defaults, typed as a recipe would give them;
    ``root`` is a path, and with ``download`` :meth:`load` fetches what is missing.
    """

    description: ClassVar[str]
    """One line: what it is, how many images and classes."""

    how_to_get: ClassVar[str]
    """One line: what a user without it does."""

    path_options: ClassVar[tuple[str, ...]] = ("root",)
    """The options that are paths, which a run keeps as absolute ones."""

    reads: ClassVar[str]
    """What a model on it reads, as its loaded data and :data:`kattn_cli.tasks.TASKS` say: ``images``."""

    section: ClassVar[type[DataSection]]
    """The keys that a recipe's data section has besides a data set's own options."""

    @abstractmethod
    def missing(self) -> str:
        """Return an empty string if all is there; else one line: which path was looked at, how to get the data.

        A line that begins with an option's key, ``data.train: …``, is a fault of that option, any other of ``root``.
        """

    def places(self) -> list[Path]:
        """Return the folder of the data; else those that are looked into, first the one that :meth:`fetch` fills.

        None for what comes inside a package.
        """
        return []

    @abstractmethod
    def files(self) -> list[FileCheck]:
        """Return each file with its check, for ``kattn data check``."""

    @abstractmethod
    def fetch(self) -> None:
        """Download or generate it to where :meth:`load` looks.

        Raises:
            DataError: if it cannot be downloaded, with what to do instead.
        """


class ImageDataSet(DataSet):
    """A data set of images."""

    reads = "images"
    section = ImageSection

    any_channels: ClassVar[bool] = False
    """Whether images can be given in the number of channels that a recipe asks for, whatever they have."""

    @abstractmethod
    def facts(self) -> Facts:
        """Return classes, channels and size.

        Raises:
            DataError: if that needs files which are not there, with the path that was looked at.
        """

    @abstractmethod
    def load(self, data: ImageSection, image_size: int) -> dict[SplitName, Split]:
        """Load ``train`` and ``test``, and ``validation`` where the data set has a split of its own.

        Raises:
            DataError: if a file is missing or damaged, or more than ``data.max_corrupt`` images cannot be read.
        """

    @property
    def corrupt(self) -> list[str]:
        """``name (reason)`` of each image that could not be read since :meth:`load`."""
        return []


class SequenceDataSet(DataSet):
    """A data set of sequences, each with a class, or with one for each of its last tokens."""

    reads = "sequences"
    section = SequenceSection

    @abstractmethod
    def facts(self) -> SequenceFacts:
        """Return classes, length, channels or vocabulary.

        Raises:
            DataError: if that needs files which are not there, with the path that was looked at.
        """

    @abstractmethod
    def load(self) -> dict[SplitName, SequenceSplit]:
        """Load ``train`` and ``test``, and ``validation`` where the data set has a split of its own.

        Raises:
            DataError: if a file is missing, damaged or empty.
        """

    def vocabulary(self) -> Vocabulary | None:
        """Return the vocabulary of the tokens, where they are of a text."""
        return None


class Corpus(DataSet):
    """Running text, from which a language model learns to predict the next token of ``context`` at most."""

    reads = "text"
    section = SequenceSection
    context: int

    @abstractmethod
    def load(self) -> TextSplits:
        """Load the tokens of ``train``, ``validation`` and ``test``, and the vocabulary that they are of.

        Raises:
            DataError: if a file is missing, cannot be read, or holds fewer tokens than a window.
        """
