"""What a kind of data says of itself, so that every command can work on it: one folder, one line in ``TASKS``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

import torch

from kattn_cli.data.corruptions import ParameterSet
from kattn_cli.data.dataset import DataSet
from kattn_cli.data.images import SplitName
from kattn_cli.data.loaded import LoadedData
from kattn_cli.data.vocabulary import Vocabulary
from kattn_cli.errors import DataError, KattnError
from kattn_cli.models import AttentionModel, Layers
from kattn_cli.recipe.data import DataSection
from kattn_cli.recipe.model import Model
from kattn_cli.recipe.schema import Attention, Recipe
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.recipe.train import Train, augmentation_faults
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import Measure
from kattn_cli.training.objective import Objective
from kattn_cli.training.opened import OpenRun


class Opener(Protocol):
    """Opens runs for an evaluation; see :class:`kattn_cli.experiment.run.Opener`."""

    @property
    def device(self) -> torch.device:
        """What models are opened on."""

    @property
    def run_as(self) -> str:
        """The recipe whose attention weights are run as; empty for each run's own."""

    def open(self, run: Run) -> OpenRun:
        """Return a run's recipe, data and model, with the weights that were asked for."""

    def read(self, run: Run) -> tuple[Recipe, Any]:
        """Return a run's recipe and data; its weights need not be there."""


@dataclass(frozen=True)
class Asked:
    """The options of ``kattn eval``, by their names there; ``opener`` has device, weights and their attention."""

    opener: Opener
    results: Path = Path("results")
    again: bool = False
    split: SplitName = "test"
    limit: int | None = None
    corruptions: bool = False
    corruption: Sequence[str] = ()
    severity: Sequence[int] = ()
    seed: int = 0
    parameters: ParameterSet | None = None
    frost: Path | None = None
    reference: str | None = None
    ood: Sequence[str] = ()
    save_images: bool = False
    sensitivity: bool = False
    window: int | None = None
    stride: int = 1
    corpus: Sequence[str] = ()
    target_return: Sequence[float] = ()
    episodes: int = 10
    workers: bool = False

    @property
    def device(self) -> torch.device:
        """What models are opened on."""
        return self.opener.device

    @property
    def run_as(self) -> str:
        """The recipe whose attention weights are run as; empty for each run's own."""
        return self.opener.run_as

    @property
    def corrupted(self) -> bool:
        """Whether anything is to be measured under corruption."""
        return bool(self.corruptions or self.corruption or self.severity)

    def check(self) -> None:
        """Refuse options that do not go together.

        Raises:
            KattnError: naming both.
        """
        if self.split != "test" and (self.corrupted or self.ood):
            raise KattnError(f"--split {self.split}: corruptions and other folders go with the test set; leave it out")
        if self.limit and self.ood:
            raise KattnError("--limit: other folders are evaluated whole; leave it or --ood out")
        if self.run_as and self.reference:
            raise KattnError("--run-as: is for the runs alone, and --reference is one, too; leave one of them out")
        if self.reference and not (self.corrupted or self.ood):
            raise KattnError("--reference: is for errors under corruption; add --corruptions")

    def anew(self, runs: Sequence[Run]) -> list[Path]:
        """Return the folders of the runs of which nothing that was measured before is kept."""
        return [run.folder for run in runs] if self.again else []


OF_SPLITS = frozenset({"split", "limit"})
OF_CLASSES = frozenset({"run_as"})
OF_CORRUPTIONS = frozenset({"corruptions", "corruption", "severity", "seed", "parameters", "frost", "save_images"})

Source = TypeVar("Source", bound=DataSet)
Section = TypeVar("Section", bound=DataSection)
Data = TypeVar("Data", bound=LoadedData)


class Task(ABC, Generic[Source, Section, Data]):
    """One kind of data: how it is loaded, modelled, trained on, evaluated and printed.

    ``Source``: the base class of its data sets, ``Section``: a recipe's data section of them, ``Data``: what they are
    when they are loaded.
    """

    reads: ClassVar[str]
    """What its models read, as data sets, loaded data and manifests say: ``images``."""

    holds: ClassVar[str]
    """What its data sets hold, in the words of a message."""

    short: ClassVar[str]
    """A sample, for a progress bar: ``img``."""

    measure: ClassVar[Measure]
    """What the best epoch is chosen by, a sweep ranks by, and a list of runs shows."""

    section: ClassVar[type[DataSection]]
    """A recipe's data section."""

    models: ClassVar[tuple[type[Model], ...]]
    """The model sections of a recipe that read such data."""

    options: ClassVar[frozenset[str]] = frozenset()
    """The options of ``kattn eval`` that are not for every kind of data, and are for this one."""

    data_sets: ClassVar[Mapping[str, type[DataSet]]] = {}
    """Data sets that the task brings along, besides those in :data:`kattn_cli.data.DATASETS`."""

    next_command: ClassVar[str] = "eval {names}"
    """What to do with trained runs, as ``kattn train`` says at its end."""

    attack_option: ClassVar[str] = ""
    """The option of ``kattn attack`` that attacks such data, where it has one of their own."""

    memory_on_cpu: ClassVar[bool] = True
    """Whether a training on a CPU notes the most memory of a step, which takes one more; tables of images ask for none.
    """

    generated: ClassVar[bool] = False
    """Whether some of its data sets are made, not downloaded, which can take minutes and is then said."""

    @abstractmethod
    def load(self, source: Source, section: Section) -> Data:
        """Return the splits that ``section`` asks for.

        With ``choose_on: test`` the split named ``validation`` is the test split: nothing is held out of the training
        samples, and a validation split of the data set's own goes unused.

        Raises:
            DataError: if files are missing or damaged, or are other than ``section`` counts on.
        """

    @abstractmethod
    def outline(self, source: Source, section: Section, folder: Path | None) -> Data:
        """Return the data without splits, as far as a model must know them; or whole, where only the samples can tell.

        Args:
            folder: of a run, whose vocabulary is taken in place of its text.

        Raises:
            DataError: if only files that are not here could tell.
        """

    @abstractmethod
    def shape(self, data: Data) -> str:
        """Return in words what a sample is, how large, and what there is to tell it from."""

    @abstractmethod
    def length(self, source: Source, section: Section) -> int | None:
        """Return what mechanisms are built for, if that is known: an image's size, or the tokens of a sequence."""

    @abstractmethod
    def length_of(self, data: Data) -> int:
        """Return the same of data that are loaded or outlined."""

    @abstractmethod
    def layers(self, model: Any, length: int) -> Layers:
        """Return what the mechanisms of ``model`` are built for."""

    @abstractmethod
    def build(self, recipe: Recipe, data: Data) -> AttentionModel:
        """Return the recipe's model for ``data``, freshly initialised."""

    @abstractmethod
    def objective(self, data: Data) -> Objective:
        """Return what a model on ``data`` is trained for."""

    @abstractmethod
    def evaluate(self, runs: Sequence[Run], asked: Asked) -> None:
        """Measure runs as ``kattn eval`` is asked to, and print what came out.

        Raises:
            KattnError: if options do not go together or with a run.
        """

    def facts(self, source: Source) -> Any:
        """Return what is known of a data set before its samples are read.

        Raises:
            DataError: if that needs files which are not there.
        """
        return source.facts()  # type: ignore[attr-defined]

    def known_facts(self, source: Source) -> Any:
        """Return :meth:`facts`; None if they need files which are not there."""
        try:
            return self.facts(source)
        except DataError:
            return None

    def data_faults(self, section: Section, source: Source, facts: Any) -> Iterable[Fault]:
        """Yield what a recipe's data section asks for and the data set, of which ``facts`` are known, has not."""
        yield from class_faults(section, facts)

    def model_faults(
        self, model: Any, attention: Attention | None, source: Source | None, section: Section | None
    ) -> Iterable[Fault]:
        """Yield what the model and the data have against each other; None stands for what is at fault by itself."""
        yield from ()

    def training_faults(self, train: Train) -> Iterable[Fault]:
        """Yield what cannot be done to such data in training."""
        yield from augmentation_faults(train)

    def causal(self, model: Any) -> str:
        """Return what of a model lets no token see those after it, in words; empty if all see each other."""
        return ""

    def vocabulary(self, data: Data) -> Vocabulary | None:
        """Return what the tokens of ``data`` stand for, if they do."""
        return None

    def contents(self, source: Source, section: Section) -> str:
        """Return in words what is in the splits of a data set that is all there."""
        splits = self.load(source, section).splits
        return f"{counted(splits)} {self.reads}"


AnyTask = Task[Any, Any, Any]


def counted(splits: Mapping[SplitName, Any]) -> str:
    """Return the sizes of splits, such as ``train 1,000, test 100``."""
    return ", ".join(f"{split} {len(samples):,}" for split, samples in splits.items())


def class_faults(section: DataSection, facts: Any) -> Iterable[Fault]:
    """Yield a number of classes or a held-out share that is not the data set's."""
    if section.classes and section.classes != facts.classes:
        yield Fault(("data", "classes"), f"{section.name} has {facts.classes} classes, not {section.classes}")
    if section.validation and facts.own_validation:
        yield Fault(("data", "validation"), f"{section.name} has a validation split of its own; leave this out")


def image_size(section: Any, facts: Any) -> int | None:
    """Return the size of the images that a model sees, if recipe or data set say; ``facts`` may be None."""
    return section.image_size or (facts.image_size if facts else None)


def sizes_of_images(section: Any, facts: Any) -> tuple[int, int]:
    """Return the classes and the size of images.

    Raises:
        DataError: if neither recipe nor data set say, with the key to give.
    """
    classes, size = facts.classes if facts else section.classes, image_size(section, facts)
    if not (classes and size):
        missing = "data.classes" if size else "data.image_size"
        raise DataError(f"give {missing}, since the images of {section.name} are not here to tell")
    return classes, size


def named_paths(option: str, texts: Sequence[str], example: str) -> list[tuple[str, Path]]:
    """Return the name and the path, with ``~`` for the home folder, of each of ``NAME=PATH``.

    Raises:
        KattnError: if one is not of that form, with the ``example``.
    """
    named = []
    for text in texts:
        name, equals, path = text.partition("=")
        if not (equals and name and path):
            raise KattnError(f"{option} {text}: expected NAME=PATH, such as {example}")
        named.append((name, Path(path).expanduser()))
    return named
