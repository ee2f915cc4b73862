"""What a paper's table of images needs to know of a run: its row, its model, what that is compared with."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kattn_cli.papers.image_runs import FAN, PLAIN, SEGMENTER, ImageRun

CLEAN = {"clean": ("top1",)}


@dataclass(frozen=True)
class ImagePart:
    """One table of ours; each paper's tables override what they have otherwise.

    ``tables``: the paper's tables that it is beside, first the one for what the paper has no number of. ``kinds``: of
    :func:`~kattn_cli.tables.image_values.image_values`, each with its metrics. ``rows``: the only ones there, by their
    names there, if any are named. ``transposed``: a line for each mechanism, where the table has few numbers of each.
    """

    title: str
    tables: tuple[str, ...]
    kinds: Mapping[str, tuple[str, ...]]
    note: str = ""
    rows: tuple[str, ...] = ()
    transposed: bool = True

    def model(self, run: ImageRun) -> str | None:
        """The paper's model that a run is laid beside, empty if it has none such; None leaves the run out.

        FAN and Segmenter have tables of their own.
        """
        return None if run.facts["architecture"] in (FAN, SEGMENTER) else run.model

    def worth(self, models: Collection[str]) -> bool:
        """Whether there is anything to be laid beside."""
        return True

    def row(self, run: ImageRun, kind: str, row: str) -> str:
        """The paper's row that is nearest to a number of ours."""
        return row

    def baselines(self, model: str) -> Sequence[str]:
        """The models that the paper compares a model with, first the one that counts most."""
        return ("softmax",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        """What the paper ran, as far as it says, by the keys of a run's ``facts``."""
        raise NotImplementedError


def on_imagenet(size: str, epochs: int) -> dict[str, str]:
    """What the papers train on ImageNet: a vision transformer of ``12 × 192``, say."""
    facts = {"name": "ImageNet-1K", "pixels": "224 × 224 pixels", "size": size, "architecture": PLAIN}
    return {**facts, "start": "from scratch", "epochs": f"{epochs} epochs"}
