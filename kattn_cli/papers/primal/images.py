"""The Primal-Attention paper's table of images, with the one that its first version has in its place."""

from __future__ import annotations

from collections.abc import Mapping

from kattn_cli.papers.image_part import ImagePart, on_imagenet
from kattn_cli.papers.image_runs import IMAGENET, ImageRun

MODELS = ("softmax", "primal_plus", "primal")


class _ImageNet(ImagePart):
    def model(self, run: ImageRun) -> str | None:
        return run.model if run.model in MODELS else None

    def row(self, run: ImageRun, kind: str, row: str) -> str:
        """Of time and memory, which it gives once, ``ImageNet``; else the set of about as many classes."""
        if kind == "costs":
            return "ImageNet"
        return IMAGENET[1000 if run.classes > 100 else 100]

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return {"device": "one V100"} if row == "ImageNet" else {**on_imagenet("12 × 384", 300), "name": row}


PARTS: list[ImagePart] = [
    _ImageNet(
        "Table 7(a): image classification (top-5: Table 5 of the first version)",
        ("table7a", "v1_table5"),
        {"clean": ("top1", "top5"), "costs": ("seconds_per_1k_steps", "memory_gb")},
    )
]
