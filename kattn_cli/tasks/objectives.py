"""What is minimised: one file for each kind of data."""

from __future__ import annotations

from kattn_cli.data import LoadedData, SegmentationData, TextData, TrajectoryData
from kattn_cli.tasks.control.objective import Control
from kattn_cli.tasks.images.objective import Classification
from kattn_cli.tasks.masks.objective import Segmentation
from kattn_cli.tasks.text.objective import Language
from kattn_cli.training.objective import LOSS, Checked, Objective

__all__ = ["LOSS", "Checked", "Objective", "objective_of"]


def objective_of(data: LoadedData) -> Objective:
    """What a model on ``data`` is trained for."""
    if isinstance(data, TextData):
        return Language(data.context, data.classes)
    if isinstance(data, SegmentationData):
        return Segmentation(data.classes, data.image_size, data.stride)
    if isinstance(data, TrajectoryData):
        return Control()
    return Classification()
