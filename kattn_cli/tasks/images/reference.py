"""What corruption errors are divided by: another run's errors, or AlexNet's on ImageNet-C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from kattn_cli.data.corruptions import ParameterSet, parameters_for
from kattn_cli.data.images import ImageData
from kattn_cli.data.reading.class_folders import class_names
from kattn_cli.errors import RunError
from kattn_cli.recipe.data import ImageSection
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.find import find_runs
from kattn_cli.runs.run import Run
from kattn_cli.tables.bits import OTHERWISE_TRAINED
from kattn_cli.tasks.task import Asked, Opener
from kattn_cli.training.opened import as_image_data, identity

ALEXNET = "alexnet"
IMAGENET_CLASSES = 1000
_WORDNET = re.compile(r"n\d{8}")


@dataclass(frozen=True)
class Reference:
    """A model to compare with: ``runs`` of one recipe, whose errors are averaged; without any, AlexNet."""

    name: str
    runs: Sequence[Run] = ()


def find_reference(asked: Asked, runs: Sequence[Run]) -> Reference | None:
    """Return the reference asked for: ``alexnet``, or a run by name or folder; None for no particular one.

    Args:
        asked: which reference, where runs are looked for by name, and the parameters of the corruptions.
        runs: those to be compared with it.

    Raises:
        RunError: if there is no such run, its recipes are several, or its test images are others than those of
            ``runs``; if AlexNet's errors cannot stand beside those of ``runs``.
    """
    name = asked.reference
    if name is None:
        return None
    if name == ALEXNET:
        for run in runs:
            if why_not := _unlike_alexnet(*_recipe_and_images(run, asked.opener), asked.parameters):
                raise RunError(f"--reference {ALEXNET}: does not go with {run.folder}: {why_not}")
        return Reference(ALEXNET)
    found = find_runs(asked.results, [name])
    if len(labels := {run.label for run in found}) > 1:
        raise RunError(f"--reference {name}: means runs of several recipes, {', '.join(sorted(labels))}; name one")
    base = _test_images(found[0], asked.opener)
    for run in runs:
        ours = _test_images(run, asked.opener)
        if different := [key for key in {**base, **ours} if base.get(key) != ours.get(key)]:
            key = different[0]
            raise RunError(
                f"--reference {name}: has other test images than {run.folder}: "
                f"its data.{key} is {base.get(key)}, not {ours.get(key)}"
            )
    seeds = ", ".join(str(run.seed) for run in found)
    return Reference(f"{found[0].label}, seed{'s' * (len(found) > 1)} {seeds}", found)


def usual_reference(recipe: Recipe, data: ImageData, parameters: ParameterSet | None = None) -> Reference | None:
    """Return the reference where none is asked for: AlexNet on ImageNet, else none."""
    return None if _unlike_alexnet(recipe, data, parameters) else Reference(ALEXNET)


def _recipe_and_images(run: Run, opener: Opener) -> tuple[Recipe, ImageData]:
    recipe, data = opener.read(run)
    return recipe, as_image_data(data, str(run.folder), "--reference")


def _test_images(run: Run, opener: Opener) -> dict[str, Any]:
    """Return what makes test images what they are."""
    recipe, loaded = _recipe_and_images(run, opener)
    section = {key: value for key, value in identity(recipe)["data"].items() if key not in OTHERWISE_TRAINED}
    return {**section, "image_size": loaded.image_size, "channels": loaded.channels}


def _unlike_alexnet(recipe: Recipe, data: ImageData, parameters: ParameterSet | None) -> str:
    """Return why AlexNet's published errors may not stand beside those of a run; nothing if they may."""
    if data.classes != IMAGENET_CLASSES:
        return f"its errors are on ImageNet's 1,000 classes, and {data.name} has {data.classes:,}"
    section = recipe.data
    assert isinstance(section, ImageSection)
    if section.name == "imagefolder" and not all(_WORDNET.fullmatch(name) for name in class_names(section)[0]):
        return "its errors are on ImageNet's 1,000 classes, and these are not called n01440764 and so on"
    used = parameters or parameters_for(data.image_size)
    return "" if used == "imagenet-c" else f"its errors are under the parameters imagenet-c, and these are {used}"
