"""Images with a class for every pixel."""

from kattn_cli.data.segmentation.data import SegmentationData, SegmentationDataSet
from kattn_cli.data.segmentation.pairs import IGNORED
from kattn_cli.data.segmentation.split import MaskSplit

__all__ = [
    "IGNORED",
    "MaskSplit",
    "SegmentationData",
    "SegmentationDataSet",
]
