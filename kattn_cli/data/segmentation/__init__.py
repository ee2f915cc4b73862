"""Images with a class for every pixel."""

from kattn_cli.data.segmentation.ade20k import Ade20k
from kattn_cli.data.segmentation.data import SegmentationData, SegmentationDataSet
from kattn_cli.data.segmentation.fashion_canvases import FashionCanvases
from kattn_cli.data.segmentation.load import load_segmentation
from kattn_cli.data.segmentation.pairs import IGNORED
from kattn_cli.data.segmentation.split import MaskSplit

__all__ = [
    "IGNORED",
    "Ade20k",
    "FashionCanvases",
    "MaskSplit",
    "SegmentationData",
    "SegmentationDataSet",
    "load_segmentation",
]
