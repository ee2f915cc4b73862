"""What a model must know of its data, without the samples where that is enough: to build it, count it, measure it."""

from __future__ import annotations

from pathlib import Path

from kattn_cli.data import ImageData, LoadedData, SegmentationData, SequenceData, TextData, TrajectoryData, data_set
from kattn_cli.data.dataset import DataSet, SequenceDataSet
from kattn_cli.data.segmentation import SegmentationDataSet
from kattn_cli.data.trajectories import TrajectorySet
from kattn_cli.data.vocabulary import VOCABULARY_FILE, read_vocabulary
from kattn_cli.environments.make import LONGEST
from kattn_cli.environments.names import ENVIRONMENTS, short_name
from kattn_cli.errors import DataError
from kattn_cli.experiment.data_section import facts_of, image_size
from kattn_cli.experiment.loading import data_of
from kattn_cli.recipe.data import DataSection, ImageSection, SegmentationSection
from kattn_cli.recipe.schema import Recipe


def outline(recipe: Recipe, folder: Path | None = None) -> LoadedData:
    """The recipe's data without splits, or whole where only the samples can tell.

    Args:
        folder: of a run, whose vocabulary is taken in place of its text.

    Raises:
        DataError: if only files that are not here could tell.
    """
    section = recipe.data
    source = data_set(section)
    if isinstance(section, ImageSection):
        return _images(section, source)
    if isinstance(section, SegmentationSection):
        assert isinstance(source, SegmentationDataSet)
        return _masks(section, source)
    if isinstance(source, SequenceDataSet):
        return _sequences(section, source)
    if isinstance(source, TrajectorySet):
        return _trajectories(section, source)
    if folder and (folder / VOCABULARY_FILE).is_file():
        context = int(getattr(source, "context", 0))
        return TextData(section.name, read_vocabulary(str(folder / VOCABULARY_FILE)), context, splits={})
    if missing := source.missing():
        beside = ", and its vocabulary not beside the run" if folder else ""
        raise DataError(f"the text of {section.name} is not here{beside} ({missing})")
    return data_of(recipe)


def _images(section: ImageSection, source: DataSet) -> ImageData:
    facts, size = facts_of(source), image_size(section)
    classes = facts.classes if facts else section.classes
    if not (classes and size):
        missing = "data.classes" if size else "data.image_size"
        raise DataError(f"give {missing}, since the images of {section.name} are not here to tell")
    channels = section.channels or (facts.channels if facts else 3)
    half = (0.5,) * channels
    return ImageData(section.name, classes, channels, size, half, half, splits={})


def _masks(section: SegmentationSection, source: SegmentationDataSet) -> SegmentationData:
    facts, size = facts_of(source), image_size(section)
    classes, channels = (facts.classes, facts.channels) if facts else (section.classes or 0, 3)
    if not (classes and size):
        missing = "data.classes" if size else "data.image_size"
        raise DataError(f"give {missing}, since the images of {section.name} are not here to tell")
    half, names = (0.5,) * channels, tuple(map(str, range(classes)))
    return SegmentationData(section.name, classes, names, channels, size, section.stride or size, half, half, splits={})


def _trajectories(section: DataSection, source: TrajectorySet) -> TrajectoryData:
    """As the files say, or else the environment; an episode is at most :data:`LONGEST` steps."""
    known = ENVIRONMENTS.get(short_name(source.environment or ""))
    try:
        facts = source.facts()
        states, actions = facts.states, facts.actions
    except DataError:
        if known is None:
            raise
        states, actions = known.states, known.actions
    return TrajectoryData(
        name=section.name,
        environment=source.environment or "",
        states=states,
        actions=actions,
        context=source.context,
        longest=LONGEST,
        mean=(0.0,) * states,
        std=(1.0,) * states,
        return_scale=source.return_scale,
        action_low=(-1.0,) * actions,
        action_high=(1.0,) * actions,
        best_return=0.0,
        worst_return=0.0,
        splits={},
    )


def _sequences(section: DataSection, source: SequenceDataSet) -> SequenceData:
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
