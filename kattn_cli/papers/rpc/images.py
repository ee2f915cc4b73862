"""The RPC-Attention paper's tables of images: clean, corrupted, out of distribution, under attack."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kattn_cli.papers.image_part import ImagePart, on_imagenet
from kattn_cli.papers.image_runs import FAN, SEGMENTER, ImageRun

BASE = "12 × 768"
ASYMMETRIC = ("softmax", "rpc asymmetric", "rpc sym/asym")
ALL_BUT_SQUARE = ("pgd", "fgsm", "spsa", "sld", "cw", "noise", "autoattack")
_CLEAN = {"clean": ("top1", "top5"), "shifted": ("top1",), "ood": ("aupr",)}
_ALL = {**_CLEAN, "corrupted": ("top1", "mce")}
_ATTACKED = {"attacked": ("top1", "top5")}
_ATTACKS = (
    "The paper's ε, all ℓ∞: 6/255 for PGD and FGSM, 1/255 for AutoAttack, 0.1 for SPSA. Its program attacks images "
    "that are normalised already."
)


@dataclass(frozen=True)
class _Any(ImagePart):
    """Of any size; ``symmetric base`` is of the size of Tables 7 and 8."""

    transposed: bool = False

    def model(self, run: ImageRun) -> str | None:
        model = super().model(run)
        return f"{model} base" if model and run.facts["size"] == BASE else model

    def baselines(self, model: str) -> Sequence[str]:
        return ("symmetric base",) if model.endswith(" base") else ("symmetric",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return on_imagenet(BASE if model.endswith(" base") else "12 × 192", 300)


class _Tiny(_Any):
    """All that is not of base size."""

    def model(self, run: ImageRun) -> str | None:
        return None if run.facts["size"] == BASE else super().model(run)


class _Base(_Any):
    """What is of base size."""

    def model(self, run: ImageRun) -> str | None:
        return super().model(run) if run.facts["size"] == BASE else None


@dataclass(frozen=True)
class _Fan(ImagePart):
    """FAN with symmetric attention, and with RPC-Attention in its first layer."""

    transposed: bool = False

    def model(self, run: ImageRun) -> str | None:
        if run.facts["architecture"] != FAN:
            return None
        return {"symmetric": "FAN-tiny", "rpc 4": "RPC-FAN-tiny"}.get(run.model, run.model)

    def baselines(self, model: str) -> Sequence[str]:
        return ("FAN-tiny",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return {**on_imagenet("12 × 192", 300), "architecture": FAN}


@dataclass(frozen=True)
class _Segmented(ImagePart):
    """Segmenter, whose backbone alone has another attention."""

    def model(self, run: ImageRun) -> str | None:
        return run.model if run.facts["architecture"] == SEGMENTER else None

    def baselines(self, model: str) -> Sequence[str]:
        return ("symmetric",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return {
            "name": "ade20k",
            "pixels": "512 × 512 pixels",
            "size": "12 × 192",
            "start": "fine-tuned from ImageNet-1K",
        }


class _Asymmetric(_Tiny):
    """Softmax attention, and RPC-Attention with softmax attention above."""

    def model(self, run: ImageRun) -> str | None:
        model = super().model(run)
        return model if model in ASYMMETRIC else None

    def worth(self, models: Collection[str]) -> bool:
        """Of softmax attention alone, the table says nothing."""
        return bool({*models} - {"softmax"})

    def baselines(self, model: str) -> Sequence[str]:
        return ("softmax",)


PARTS: list[ImagePart] = [
    _Tiny("Table 1: clean, corrupted, out of distribution", ("table1",), _ALL),
    _Tiny("Table 2: under attack", ("table2",), _ATTACKED, _ATTACKS, ALL_BUT_SQUARE),
    _Any("Table 4: by type of corruption, mean over five severities", ("table4",), {"by_type": ("top1", "mce")}),
    _Tiny("Table 5: under the Square attack", ("table5",), _ATTACKED, rows=("square",)),
    _Segmented(
        "Table 6: segmentation",
        ("table6",),
        {"segmented": ("mean_iou", "mean_accuracy")},
        "Corrupted: the mean over 15 types and, as here, five severities; the paper does not say at which.",
    ),
    _Base("Table 7: base size, clean, corrupted, out of distribution", ("table7",), _ALL),
    _Base("Table 8: base size, under attack", ("table8",), _ATTACKED, _ATTACKS),
    _Fan("Table 9: FAN, clean and out of distribution", ("table9",), _ALL),
    _Fan("Table 10: FAN, under attack", ("table10",), _ATTACKED, _ATTACKS),
    _Asymmetric("Table 14: asymmetric attention", ("table14",), _CLEAN),
]
