"""A recipe's data section against what is here; no image is read for it."""

from __future__ import annotations

import os
from collections.abc import Iterable

from kattn_cli.data import DATASETS, data_set
from kattn_cli.errors import DataError, did_you_mean
from kattn_cli.options import option_faults, option_names, with_defaults
from kattn_cli.recipe_data import Data
from kattn_cli.strict_yaml import Fault

_SECTION = ("data",)


def data_faults(data: Data, there: bool = True) -> Iterable[Fault]:
    """What the data set has to say against the section; ``there``: whether its files must be there."""
    faults = option_faults_of(data)
    yield from faults
    if not faults:
        yield from _contradictions(data)
        yield from _faults_of_what_is_there(data, there)


def option_faults_of(data: Data) -> list[Fault]:
    """A name that does not exist, or options that the data set does not take."""
    if data.name not in DATASETS:
        hint = did_you_mean(data.name, DATASETS)
        return [Fault((*_SECTION, "name"), f'expected one of {", ".join(DATASETS)}, not "{data.name}"{hint}')]
    cls = DATASETS[data.name]
    names = option_names(cls)
    known = {key: value for key, value in data.options.items() if key in names}
    hints = {key: did_you_mean(key, [*Data.model_fields, *names]) for key in data.options if key not in known}
    unknown = [Fault((*_SECTION, key), f"unknown key{hint}") for key, hint in hints.items()]
    return unknown + option_faults(cls, known, _SECTION)


def image_size(data: Data) -> int | None:
    """The size of the images that a model will see, if that is known."""
    if data.image_size is not None:
        return data.image_size
    try:
        return None if option_faults_of(data) else data_set(data).facts().image_size
    except DataError:
        return None


def resolved(data: Data) -> Data:
    """With every option of the data set written out, and paths as absolute ones.

    What is not there may be a name on a hub, and stays as it is; ``root`` is always a path.
    """
    cls = DATASETS[data.name]
    options = with_defaults(cls, data.options)
    for key in cls.path_options:
        if (given := options.get(key)) and (key == "root" or os.path.exists(os.path.expanduser(given))):
            options[key] = os.path.abspath(os.path.expanduser(given))
    return Data(**{key: getattr(data, key) for key in Data.model_fields}, **options)


def _contradictions(data: Data) -> Iterable[Fault]:
    if data.validation and data.choose_on == "test":
        yield Fault((*_SECTION, "validation"), "is held out of training to choose by, and choose_on is test")


def _faults_of_what_is_there(data: Data, there: bool) -> Iterable[Fault]:
    try:
        source = data_set(data)
    except DataError as error:
        yield _placed(data, str(error))
        return
    missing = source.missing()
    if missing and there and not data.options.get("download"):
        yield _placed(data, missing)
    try:
        facts = source.facts()
    except DataError as error:
        if not missing:
            yield _placed(data, str(error))
        return
    if data.classes and data.classes != facts.classes:
        yield Fault((*_SECTION, "classes"), f"{data.name} has {facts.classes} classes, not {data.classes}")
    if data.channels and data.channels != facts.channels and not DATASETS[data.name].any_channels:
        channels = "1 channel" if facts.channels == 1 else f"{facts.channels} channels"
        yield Fault((*_SECTION, "channels"), f"{data.name} has {channels}, not {data.channels}")
    if data.image_size is None and facts.image_size is None:
        yield Fault((*_SECTION, "image_size"), f"is missing: the images of {data.name} vary in size; 224 is usual")
    if data.validation and facts.own_validation:
        yield Fault((*_SECTION, "validation"), f"{data.name} has a validation split of its own; leave this out")


def _placed(data: Data, message: str) -> Fault:
    """``data.train: there is …`` is a fault of that key; what names none is one of the root."""
    names = option_names(DATASETS[data.name])
    message = message.removeprefix(f"{data.name}: ")
    key, colon, rest = message.partition(": ")
    if colon and key.startswith("data.") and key.removeprefix("data.") in names:
        return Fault((*_SECTION, key.removeprefix("data.")), rest)
    return Fault((*_SECTION, "root" if "root" in names else "name"), message)
