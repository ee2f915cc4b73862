"""Operations of the models that were trained, counted from their recipes without weights and samples."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kattn_cli.analysis.model_flops import model_flops_of
from kattn_cli.commands import recipes
from kattn_cli.commands.data_section import facts_of, image_size
from kattn_cli.commands.loading import build, data_of
from kattn_cli.data import ImageData, LoadedData, SequenceData, TextData, data_set
from kattn_cli.data.dataset import SequenceDataSet
from kattn_cli.data.vocabulary import VOCABULARY_FILE, read_vocabulary
from kattn_cli.errors import DataError, KattnError
from kattn_cli.recipe import Recipe
from kattn_cli.recipe_data import ImageSection
from kattn_cli.report.cost import Flops
from kattn_cli.results import RECIPE, Run


def forward_flops(runs: Mapping[str, Run]) -> dict[str, Flops]:
    """Of one sample of each run's data, under the same names; why not, where its recipe cannot be built here.

    Equal models on equal data are counted once.
    """
    counted: dict[str, Flops] = {}
    found = {}
    for name, run in runs.items():
        path = run.folder / RECIPE
        try:
            if not path.is_file():
                raise DataError("there is no recipe")
            recipe = recipes.load(path, weights=False, data=False)
            key = recipe.model_dump_json(include={"data", "model", "attention"})
            if key not in counted:
                counted[key] = _count(recipe, run.folder)
            found[name] = counted[key]
        except KattnError as error:
            found[name] = Flops(why_not=_why(error, path))
    return found


def _count(recipe: Recipe, folder: Path) -> Flops:
    data = _outline(recipe, folder)

    def sample() -> Any:
        return data.sample(1, "meta")

    return Flops(float(model_flops_of(lambda: build(recipe, data), sample).flops))


def _outline(recipe: Recipe, folder: Path) -> LoadedData:
    """What a model must know of its data, without the samples where that is enough.

    Raises:
        DataError: if only files that are not here could tell.
    """
    section = recipe.data
    source = data_set(section)
    if isinstance(section, ImageSection):
        facts, size = facts_of(source), image_size(section)
        classes = facts.classes if facts else section.classes
        if not (classes and size):
            raise DataError(f"the images of {section.name} are not here to tell their size and classes")
        channels = section.channels or (facts.channels if facts else 3)
        half = (0.5,) * channels
        return ImageData(section.name, classes, channels, size, half, half, splits={})
    if isinstance(source, SequenceDataSet):
        known = source.facts()
        return SequenceData(
            name=section.name,
            classes=known.classes,
            seq_len=known.seq_len,
            channels=known.channels,
            vocabulary_size=known.vocabulary,
            pairs=known.pairs,
            mean=(0.0,) * known.channels,
            std=(1.0,) * known.channels,
            splits={},
        )
    if (folder / VOCABULARY_FILE).is_file():
        context = int(getattr(source, "context", 0))
        return TextData(section.name, read_vocabulary(str(folder / VOCABULARY_FILE)), context, splits={})
    if missing := source.missing():
        raise DataError(f"the text of {section.name} is not here, and its vocabulary not beside the run ({missing})")
    return data_of(recipe)


def _why(error: KattnError, path: Path) -> str:
    """Its first line, without the recipe's path."""
    return " ".join(str(error).splitlines()[:1]).removeprefix(f"{path}: ")
