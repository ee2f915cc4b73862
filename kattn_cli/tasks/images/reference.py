"""What corruption errors are divided by: another run's errors, or AlexNet's on ImageNet-C."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kattn_cli.data import ImageData
from kattn_cli.data.corruptions import ParameterSet, parameters_for
from kattn_cli.data.reading.class_folders import class_names
from kattn_cli.errors import RunError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.loading import identity, image_data_of
from kattn_cli.recipe.data import ImageSection
from kattn_cli.recipe.schema import Recipe
from kattn_cli.runs.run import RECIPE, Run, find_runs

ALEXNET = "alexnet"
IMAGENET_CLASSES = 1000
_WORDNET = re.compile(r"n\d{8}")
_OTHERWISE_TRAINED = {"validation", "choose_on", "classes", "in_memory", "validation_folder", "train"}
"""Keys of a data section that change no test image."""


@dataclass(frozen=True)
class Reference:
    """A model to compare with: ``runs`` of one recipe, whose errors are averaged; without any, AlexNet."""

    name: str
    runs: Sequence[Run] = ()


def find_reference(
    asked: str | None, runs: Sequence[Run], results: Path, parameters: ParameterSet | None = None
) -> Reference | None:
    """The reference asked for: ``alexnet``, or a run by name or folder.

    Args:
        asked: None for no particular one.
        runs: those to be compared with it.
        results: where runs are looked for by name.
        parameters: those of the corruptions, by default what goes with the size of the images.

    Raises:
        RunError: if there is no such run, its recipes are several, or its test images are others than those of
            ``runs``; if AlexNet's errors cannot stand beside those of ``runs``.
    """
    if asked is None:
        return None
    if asked == ALEXNET:
        for run in runs:
            recipe = recipes.load(run.folder / RECIPE, weights=False)
            if why_not := _unlike_alexnet(recipe, image_data_of(recipe, "--reference"), parameters):
                raise RunError(f"--reference {ALEXNET}: does not go with {run.folder}: {why_not}")
        return Reference(ALEXNET)
    found = find_runs(results, [asked])
    if len(labels := {run.label for run in found}) > 1:
        raise RunError(f"--reference {asked}: means runs of several recipes, {', '.join(sorted(labels))}; name one")
    base = _test_images(found[0])
    for run in runs:
        ours = _test_images(run)
        if different := [key for key in {**base, **ours} if base.get(key) != ours.get(key)]:
            key = different[0]
            raise RunError(
                f"--reference {asked}: has other test images than {run.folder}: "
                f"its data.{key} is {base.get(key)}, not {ours.get(key)}"
            )
    seeds = ", ".join(str(run.seed) for run in found)
    return Reference(f"{found[0].label}, seed{'s' * (len(found) > 1)} {seeds}", found)


def usual_reference(recipe: Recipe, data: ImageData, parameters: ParameterSet | None = None) -> Reference | None:
    """The reference where none is asked for: AlexNet on ImageNet, else none."""
    return None if _unlike_alexnet(recipe, data, parameters) else Reference(ALEXNET)


def _test_images(run: Run) -> dict[str, Any]:
    """What makes test images what they are."""
    recipe = recipes.load(run.folder / RECIPE, weights=False)
    loaded = image_data_of(recipe, "--reference")
    section = {key: value for key, value in identity(recipe)["data"].items() if key not in _OTHERWISE_TRAINED}
    return {**section, "image_size": loaded.image_size, "channels": loaded.channels}


def _unlike_alexnet(recipe: Recipe, data: ImageData, parameters: ParameterSet | None) -> str:
    """Empty if AlexNet's published errors may stand beside those of a run; else why they may not."""
    if data.classes != IMAGENET_CLASSES:
        return f"its errors are on ImageNet's 1,000 classes, and {data.name} has {data.classes:,}"
    section = recipe.data
    assert isinstance(section, ImageSection)
    if section.name == "imagefolder" and not all(_WORDNET.fullmatch(name) for name in class_names(section)[0]):
        return "its errors are on ImageNet's 1,000 classes, and these are not called n01440764 and so on"
    used = parameters or parameters_for(data.image_size)
    return "" if used == "imagenet-c" else f"its errors are under the parameters imagenet-c, and these are {used}"
