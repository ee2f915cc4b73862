"""Recipes checked against what is here: data sets, models, weights, mechanisms and their options."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, TypeVar

import timm
import torch

from kattn_cli.attention import attention_class, attention_classes
from kattn_cli.attention.options import all_options, check_options
from kattn_cli.attention.user_file import names_a_file, one_line
from kattn_cli.errors import CheckpointError, DataError, RecipeError, did_you_mean
from kattn_cli.models import Layers
from kattn_cli.models.initial import source_fault, weights_file
from kattn_cli.models.pretrained import TIMM
from kattn_cli.models.transfer import FILE_TYPES, read_tensors
from kattn_cli.recipe.data import DataSection
from kattn_cli.recipe.faults import all_of
from kattn_cli.recipe.files import Source, find_recipes
from kattn_cli.recipe.load import load_recipe
from kattn_cli.recipe.model import Model, TimmModel
from kattn_cli.recipe.options import option_faults, option_names, with_defaults
from kattn_cli.recipe.schema import Attention, Mechanism, Recipe
from kattn_cli.recipe.strict_yaml import Fault, KeyPath
from kattn_cli.recipe.sweep import Point, load_points
from kattn_cli.recipe.train import Train
from kattn_cli.tasks import TASKS, all_data_sets, kinds, source_of, task_reading
from kattn_cli.tasks.task import AnyTask
from kattn_cli.training.augment.randaugment import parse_policy
from kattn_cli.training.checkpoint import damage_of

AnySection = TypeVar("AnySection", bound=DataSection)


def load(source: Path | Source, overrides: Sequence[str] = (), *, weights: bool = True, data: bool = True) -> Recipe:
    """Return the recipe of a file or of one of its variants, with every default written out.

    Args:
        weights: whether the weights to begin from must be there, as they must for a training to begin.
        data: whether the files of the data set must be there.

    Raises:
        RecipeError: naming every fault.
    """
    check = partial(component_faults, weights=weights, there=data)
    return _complete(load_recipe(source, kinds(), overrides, check=check, trial=_refusals))


def load_each(
    references: Iterable[str], overrides: Sequence[str] = (), *, weights: bool = True, data: bool = True
) -> list[tuple[Source, Recipe]]:
    """Return every recipe that ``references`` mean, each as :func:`load` gives it.

    Raises:
        RecipeError: naming every fault of every recipe.
    """
    found, errors = [], []
    for source in [source for reference in references for source in find_recipes(reference)]:
        try:
            found.append((source, load(source, overrides, weights=weights, data=data)))
        except RecipeError as error:
            errors.append(error)
    if errors:
        raise all_of(errors)
    return found


def load_sweep(
    source: Path | Source,
    overrides: Sequence[str] = (),
    over: Sequence[str] = (),
    seeds: Sequence[int] = (),
    *,
    data: bool = True,
) -> list[Point]:
    """Return the points of the sweep at ``source``, each as :func:`load` gives a recipe.

    Args:
        overrides, over, seeds: as :func:`~kattn_cli.recipe.sweep.load_points` takes them.
        data: whether the files of the data set must be there.

    Raises:
        RecipeError: naming every fault of every point.
    """
    check = partial(component_faults, there=data)
    return load_points(source, kinds(), overrides, over, seeds, check=check, trial=_refusals, complete=_complete)


def _complete(recipe: Recipe) -> Recipe:
    spelled_out = {key: _spelled_out(one) for key, one in recipe.attention.layers.items()}
    default = _spelled_out(recipe.attention)
    attention = Attention(name=default.name, layers=spelled_out, **default.options)
    sections = {
        "attention": attention,
        "model": _located(recipe.model),
        "data": resolved(recipe.data),
        "init_from": recipe.init_from and str(_path(recipe.init_from)),
    }
    return recipe.model_copy(update=sections)


def _spelled_out(mechanism: Mechanism) -> Mechanism:
    name = mechanism.name
    if names_a_file(name):
        file, _, attribute = name.rpartition(":")
        name = f"{os.path.realpath(Path(file).expanduser())}:{attribute}"
    return Mechanism(name=name, **all_options(mechanism.name, mechanism.options))


def _located(model: Model) -> Model:
    """Return the model with a file of weights by its absolute path."""
    if not isinstance(model, TimmModel) or model.weights in (None, TIMM):
        return model
    return model.model_copy(update={"weights": str(_path(model.weights))})


def _path(weights: str) -> Path:
    return Path(os.path.realpath(Path(weights).expanduser()))


def component_faults(sections: Mapping[str, Any], weights: bool = True, there: bool = True) -> Iterable[Fault]:
    """Yield what the data, the model and the mechanisms themselves have to say against a recipe."""
    data, model, attention, train = (sections.get(name) for name in ("data", "model", "attention", "train"))
    task, source = _task_of(data, model)
    if train:
        yield from _training_faults(train)
    if attention:
        for path, mechanism in _mechanisms(attention):
            yield from check_options(mechanism.name, mechanism.options, path)
    if weights and sections.get("init_from"):
        yield from _initial_faults(sections["init_from"], model)
    if data:
        yield from data_faults(data, there)
    if task and model:
        yield from task.model_faults(model, attention, source, data if source else None)
        if weights and isinstance(model, TimmModel) and model.weights:
            yield from _weights_faults(model.name, model.weights)
        if train:
            yield from task.training_faults(train)
        if attention and (asked_by := task.causal(model)):
            yield from _causal_faults(attention, asked_by)


def _task_of(data: DataSection | None, model: Model | None) -> tuple[AnyTask | None, Any]:
    """Return the task of the data, and the data set; without sound data, the first task that the model can be for."""
    if data and not option_faults_of(data):
        try:
            return source_of(data)
        except DataError:
            return task_reading(all_data_sets()[data.name].reads), None
    return next((task for task in TASKS.values() if isinstance(model, task.models)), None), None


def _mechanisms(attention: Attention) -> Iterator[tuple[KeyPath, Mechanism]]:
    """Yield each mechanism that a recipe names, with its place there."""
    yield ("attention",), Mechanism(name=attention.name, **attention.options)
    for key, exception in attention.layers.items():
        yield ("attention", "layers", key), exception


def _causal_faults(attention: Attention, asked_by: str) -> Iterable[Fault]:
    """Yield mechanisms without a causal form; names that do not exist are a fault of their own."""
    for path, mechanism in _mechanisms(attention):
        try:
            cls = attention_class(mechanism.name)
        except RecipeError:
            continue
        if not getattr(cls, "supports_causal", False):
            causal = ", ".join(name for name, one in attention_classes().items() if one.supports_causal)
            where = path if len(path) > 1 else (*path, "name")
            yield Fault(where, f"{mechanism.name} has no causal form, as {asked_by} asks; these have: {causal}")


def _refusals(recipe: Recipe) -> Iterable[Fault]:
    """Yield what a mechanism says only when it is built, such as of options that do not go together."""
    layers = _layers(recipe)
    if layers is None:
        return
    for path, mechanism in _mechanisms(recipe.attention):
        try:
            module = layers.build(mechanism)
        except RecipeError as error:
            yield Fault(path, str(error).removeprefix(f"attention {mechanism.name}: "))
            continue
        if names_a_file(mechanism.name):
            yield from _forward_faults(path, module, (1, layers.seq_len, layers.dim))


def _layers(recipe: Recipe) -> Layers | None:
    """Return what the mechanisms are built for, if the size of the data is known."""
    task, source = source_of(recipe.data)
    length = task.length(source, recipe.data)
    return task.layers(recipe.model, length) if length else None


@torch.no_grad()
def _forward_faults(path: KeyPath, module: torch.nn.Module, shape: tuple[int, int, int]) -> Iterable[Fault]:
    """Yield what a mechanism of the user's own does wrong with one sample."""
    try:
        out = module(torch.zeros(shape))
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        yield Fault(path, f"forward fails: {one_line(error)}")
        return
    if getattr(out, "shape", None) != shape:
        found = tuple(out.shape) if isinstance(out, torch.Tensor) else type(out).__name__
        yield Fault(path, f"forward must return x's shape, {shape}, not {found}")


def _training_faults(train: Train) -> Iterable[Fault]:
    if train.randaugment:
        try:
            parse_policy(train.randaugment)
        except ValueError as error:
            yield Fault(("train", "randaugment"), str(error))
    if train.tensorboard and not find_spec("tensorboard"):
        yield Fault(("train", "tensorboard"), "needs a package that is not installed: pip install 'kattn[tensorboard]'")


def _initial_faults(init_from: str, model: Model | None) -> Iterable[Fault]:
    if isinstance(model, TimmModel) and model.weights:
        yield Fault(("init_from",), "and model.weights are both to begin from; give one of the two")
    elif fault := source_fault(str(_path(init_from))) or _damage(weights_file(_path(init_from))):
        yield Fault(("init_from",), fault)


def _weights_faults(name: str, weights: str) -> Iterable[Fault]:
    path = ("model", "weights")
    if weights == TIMM:
        if timm.is_model(name) and not timm.is_model_pretrained(name):
            yield Fault(path, f"timm has no weights for {name}")
    elif Path(weights).suffix not in FILE_TYPES:
        yield Fault(path, f'expected timm, or a file that ends in {", ".join(FILE_TYPES)}, not "{weights}"')
    elif not _path(weights).is_file():
        yield Fault(path, f"there is no file {_path(weights)}")
    elif damage := _damage(_path(weights)):
        yield Fault(path, damage)


def _damage(file: Path) -> str:
    """Return why weights cannot be read, or an empty string."""
    return _damage_of_version(file, file.stat().st_mtime_ns)


@cache
def _damage_of_version(file: Path, changed: int) -> str:
    """Read the file once for each time ``changed`` that it was written, however many recipes begin with it."""
    if file.suffix == ".safetensors":
        return (damage := damage_of(file)) and f"{file} {damage}"
    try:
        read_tensors(file)
    except CheckpointError as error:
        return str(error)
    return ""


def data_faults(data: DataSection, there: bool = True) -> Iterable[Fault]:
    """Yield what the data set has to say against the section; ``there``: whether its files must be there."""
    faults = option_faults_of(data)
    yield from faults
    if not faults:
        if data.validation and data.choose_on == "test":
            yield Fault(("data", "validation"), "is held out of training to choose by, and choose_on is test")
        yield from _faults_of_what_is_there(data, there)


def option_faults_of(data: DataSection) -> list[Fault]:
    """Return a name that does not exist or of data that the model does not read, and options that do not exist."""
    known = all_data_sets()
    if data.name not in known:
        hint = did_you_mean(data.name, known)
        return [Fault(("data", "name"), f'expected one of {", ".join(known)}, not "{data.name}"{hint}')]
    cls = known[data.name]
    if not isinstance(data, cls.section):
        task = task_reading(cls.reads)
        models = " or ".join(model.model_fields["name"].default for model in task.models if model is not TimmModel)
        why = f"{data.name} holds {task.holds}; take model.name: {models}, or another data set"
        return [Fault(("data", "name"), why)]
    names = option_names(cls)
    given = {key: value for key, value in data.options.items() if key in names}
    hints = {key: did_you_mean(key, [*type(data).model_fields, *names]) for key in data.options if key not in given}
    unknown = [Fault(("data", key), f"unknown key{hint}") for key, hint in hints.items()]
    return unknown + option_faults(cls, given, ("data",))


def resolved(data: AnySection) -> AnySection:
    """Return the section with every option of the data set written out, and paths as absolute ones.

    What is not there may be a name on a hub, and stays as it is; ``root`` is always a path.
    """
    cls = all_data_sets()[data.name]
    options = with_defaults(cls, data.options)
    for key in cls.path_options:
        if (given := options.get(key)) and (key == "root" or os.path.exists(os.path.expanduser(given))):
            options[key] = os.path.abspath(os.path.expanduser(given))
    return type(data)(**{key: getattr(data, key) for key in type(data).model_fields}, **options)


def _faults_of_what_is_there(data: DataSection, there: bool) -> Iterable[Fault]:
    try:
        task, source = source_of(data)
    except DataError as error:
        yield _placed(data, str(error))
        return
    missing = source.missing()
    if missing and there and not data.options.get("download"):
        yield _placed(data, missing)
    try:
        facts = task.facts(source)
    except DataError as error:
        if not missing:
            yield _placed(data, str(error))
        return
    yield from task.data_faults(data, source, facts)


def _placed(data: DataSection, message: str) -> Fault:
    """Return a fault in its place: ``data.train: there is …`` is one of that key, what names none one of the root."""
    names = option_names(all_data_sets()[data.name])
    message = message.removeprefix(f"{data.name}: ")
    key, colon, rest = message.partition(": ")
    if colon and key.startswith("data.") and key.removeprefix("data.") in names:
        return Fault(("data", key.removeprefix("data.")), rest)
    return Fault(("data", "root" if "root" in names else "name"), message)
