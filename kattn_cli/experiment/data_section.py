"""A recipe's data section against what is here; no sample is read for it."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TypeVar

from kattn_cli.data import DATASETS, data_set
from kattn_cli.data.dataset import Corpus, DataSet, Facts, ImageDataSet, SequenceDataSet, SequenceFacts
from kattn_cli.data.segmentation import SegmentationDataSet
from kattn_cli.data.trajectories import TrajectorySet
from kattn_cli.data.trajectories.trajectory_set import TrajectoryFacts
from kattn_cli.errors import DataError, did_you_mean
from kattn_cli.recipe.data import DataSection, ImageSection, SegmentationSection
from kattn_cli.recipe.options import option_faults, option_names, with_defaults
from kattn_cli.recipe.strict_yaml import Fault

_SECTION = ("data",)
AnySection = TypeVar("AnySection", bound=DataSection)


def data_faults(data: DataSection, there: bool = True) -> Iterable[Fault]:
    """What the data set has to say against the section; ``there``: whether its files must be there."""
    faults = option_faults_of(data)
    yield from faults
    if not faults:
        yield from _contradictions(data)
        yield from _faults_of_what_is_there(data, there)


def option_faults_of(data: DataSection) -> list[Fault]:
    """A name that does not exist or of data that the model does not read; options that the data set does not take."""
    if data.name not in DATASETS:
        hint = did_you_mean(data.name, DATASETS)
        return [Fault((*_SECTION, "name"), f'expected one of {", ".join(DATASETS)}, not "{data.name}"{hint}')]
    cls = DATASETS[data.name]
    if not isinstance(data, cls.section):
        return [Fault((*_SECTION, "name"), _unlike_the_model(data.name, cls))]
    names = option_names(cls)
    known = {key: value for key, value in data.options.items() if key in names}
    hints = {key: did_you_mean(key, [*type(data).model_fields, *names]) for key in data.options if key not in known}
    unknown = [Fault((*_SECTION, key), f"unknown key{hint}") for key, hint in hints.items()]
    return unknown + option_faults(cls, known, _SECTION)


def _unlike_the_model(name: str, cls: type[DataSet]) -> str:
    if issubclass(cls, SegmentationDataSet):
        return f"{name} holds images with a class for every pixel; take model.name: segmenter, or another data set"
    if issubclass(cls, ImageDataSet):
        return f"{name} holds images, which encoder and decoder do not read; take model.name: vit, or another data set"
    kind, models = ("text", "decoder") if issubclass(cls, Corpus) else ("sequences", "encoder or decoder")
    return f"{name} holds {kind}, and the model reads images; take model.name: {models}"


def image_size(data: DataSection) -> int | None:
    """The size of the images that a model will see, if that is known."""
    if isinstance(data, ImageSection | SegmentationSection) and data.image_size is not None:
        return data.image_size
    source = _data_set(data)
    facts = facts_of(source) if source else None
    return facts.image_size if facts else None


def sequence_length(data: DataSection) -> int | None:
    """The greatest number of tokens that a model will see, if that is known."""
    source = _data_set(data)
    if isinstance(source, Corpus | TrajectorySet):
        return source.context
    facts = sequence_facts(data)
    return facts.seq_len if facts else None


def sequence_facts(data: DataSection) -> SequenceFacts | None:
    """Of a data set of sequences, if its files are not needed to know them or are there; else None."""
    source = _data_set(data)
    try:
        return source.facts() if isinstance(source, SequenceDataSet) else None
    except DataError:
        return None


def _data_set(data: DataSection) -> DataSet | None:
    """If its options are sound, alone and together."""
    try:
        return None if option_faults_of(data) else data_set(data)
    except DataError:
        return None


def facts_of(source: DataSet) -> Facts | None:
    """Of a data set of images, if its files are not needed to know them or are there; else None."""
    try:
        return source.facts() if isinstance(source, ImageDataSet | SegmentationDataSet) else None
    except DataError:
        return None


def resolved(data: AnySection) -> AnySection:
    """With every option of the data set written out, and paths as absolute ones.

    What is not there may be a name on a hub, and stays as it is; ``root`` is always a path.
    """
    cls = DATASETS[data.name]
    options = with_defaults(cls, data.options)
    for key in cls.path_options:
        if (given := options.get(key)) and (key == "root" or os.path.exists(os.path.expanduser(given))):
            options[key] = os.path.abspath(os.path.expanduser(given))
    return type(data)(**{key: getattr(data, key) for key in type(data).model_fields}, **options)


def _contradictions(data: DataSection) -> Iterable[Fault]:
    if data.validation and data.choose_on == "test":
        yield Fault((*_SECTION, "validation"), "is held out of training to choose by, and choose_on is test")


def _faults_of_what_is_there(data: DataSection, there: bool) -> Iterable[Fault]:
    try:
        source = data_set(data)
    except DataError as error:
        yield _placed(data, str(error))
        return
    missing = source.missing()
    if missing and there and not data.options.get("download"):
        yield _placed(data, missing)
    if isinstance(source, Corpus):
        yield from _corpus_faults(data)
        return
    assert isinstance(source, ImageDataSet | SequenceDataSet | SegmentationDataSet | TrajectorySet)
    try:
        facts = source.facts()
    except DataError as error:
        if not missing:
            yield _placed(data, str(error))
        return
    if isinstance(facts, TrajectoryFacts):
        yield from _trajectory_faults(data)
        return
    if data.classes and data.classes != facts.classes:
        yield Fault((*_SECTION, "classes"), f"{data.name} has {facts.classes} classes, not {data.classes}")
    if data.validation and facts.own_validation:
        yield Fault((*_SECTION, "validation"), f"{data.name} has a validation split of its own; leave this out")
    if isinstance(data, ImageSection) and isinstance(facts, Facts):
        yield from _image_faults(data, facts)
    if isinstance(data, SegmentationSection) and isinstance(facts, Facts):
        yield from _segmentation_faults(data, facts)


def _trajectory_faults(data: DataSection) -> Iterable[Fault]:
    if data.classes:
        yield Fault((*_SECTION, "classes"), f"{data.name} holds trajectories, which have none; leave this out")
    if data.choose_on == "test":
        yield Fault((*_SECTION, "choose_on"), "trajectories have no test split: the test is to act, by kattn eval")


def _image_faults(data: ImageSection, facts: Facts) -> Iterable[Fault]:
    if data.channels and data.channels != facts.channels and not getattr(DATASETS[data.name], "any_channels", False):
        channels = "1 channel" if facts.channels == 1 else f"{facts.channels} channels"
        yield Fault((*_SECTION, "channels"), f"{data.name} has {channels}, not {data.channels}")
    if data.image_size is None and facts.image_size is None:
        yield Fault((*_SECTION, "image_size"), f"is missing: the images of {data.name} vary in size; 224 is usual")


def _segmentation_faults(data: SegmentationSection, facts: Facts) -> Iterable[Fault]:
    size = data.image_size or facts.image_size
    if size is None:
        yield Fault((*_SECTION, "image_size"), f"is missing: the images of {data.name} vary in size; 512 is usual")
    elif data.stride and data.stride > size:
        yield Fault((*_SECTION, "stride"), f"must be at most the window's size, {size}, so that no pixel is left out")


def _corpus_faults(data: DataSection) -> Iterable[Fault]:
    if data.classes:
        yield Fault((*_SECTION, "classes"), f"{data.name} is running text, which has none; leave this out")
    if data.validation:
        yield Fault((*_SECTION, "validation"), f"{data.name} is running text, held out by its own rule; leave this out")


def _placed(data: DataSection, message: str) -> Fault:
    """``data.train: there is …`` is a fault of that key; what names none is one of the root."""
    names = option_names(DATASETS[data.name])
    message = message.removeprefix(f"{data.name}: ")
    key, colon, rest = message.partition(": ")
    if colon and key.startswith("data.") and key.removeprefix("data.") in names:
        return Fault((*_SECTION, key.removeprefix("data.")), rest)
    return Fault((*_SECTION, "root" if "root" in names else "name"), message)
