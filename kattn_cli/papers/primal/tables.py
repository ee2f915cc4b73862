"""The Primal-Attention paper's tables: series, Long-Range Arena, control, language, ablations, images."""

from __future__ import annotations

from collections.abc import Mapping

from kattn_cli.papers.beside import GridTable, ImageTable, PaperTable, SequenceTable, on_imagenet
from kattn_cli.papers.described import IMAGENET, Described

MODELS = ("softmax", "primal_plus", "primal")
COSTS = ("seconds_per_1k_steps", "memory_gb")
_CLASSIFIED = {"primal_plus": ("top1",)}
_SERIES = {"": {"size": "2 × 512", "device": "one P100"}}
_V100 = {"size": "2 × 64", "device": "one V100"}
_LRA = {
    "ListOps": {"length": "up to 2,000 tokens", "training": "96,000 to train on", **_V100},
    "Text": {"length": "up to 4,000 bytes", **_V100},
    "Retrieval": {"length": "up to 4,000 bytes", **_V100},
    "Image": {"length": "32 × 32 pixels", "training": "50,000 to train on", **_V100},
    "Pathfinder": {"length": "32 × 32 pixels", "training": "160,000 to train on", **_V100},
}
_CONTROL = {"": {"context": "context 20", "size": "3 × 256", "device": "one P100"}}


class _ImageNet(ImageTable):
    """With Table 5 of the first version, which the second version has without its top-5."""

    def model(self, run: Described) -> str | None:
        return run.model if run.model in MODELS else None

    def row(self, run: Described, kind: str, row: str) -> str:
        """Return ``ImageNet`` for time and memory, which it gives once, else the set of about as many classes."""
        if kind == "costs":
            return "ImageNet"
        return IMAGENET[1000 if run.classes > 100 else 100]

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return {"device": "one V100"} if row == "ImageNet" else {**on_imagenet("12 × 384", 300), "name": row}


def _with(model: str, without: str) -> dict[str, tuple[str, ...]]:
    """Return as baselines, for an ablation's model, the one that lacks a part of it."""
    return {model: (without,), without: ()}


TABLES: list[PaperTable] = [
    _ImageNet(
        "Table 7(a): image classification (top-5: Table 5 of the first version)",
        ("table7a", "v1_table5"),
        {"clean": ("top1", "top5"), "costs": COSTS},
    ),
    SequenceTable(
        "Tables 1 and 2: UEA time series",
        ("table1", "table2"),
        {"series": ("top1", "seconds_per_epoch", "memory_gb")},
        "Of memory, the paper has the mean over the sets alone: softmax 10.9 GB, Primal.+ 6.5, Primal. 2.7.",
        claims=_CLASSIFIED,
        settings=_SERIES,
    ),
    SequenceTable(
        "Tables 3 and 4: Long-Range Arena",
        ("table3", "table4"),
        {"lra": ("top1", *COSTS)},
        claims=_CLASSIFIED,
        settings=_LRA,
    ),
    SequenceTable(
        "Table 5: offline reinforcement learning",
        ("table5",),
        {"control": ("reward",)},
        "The mean over episodes that were asked for the greatest return, as D4RL normalises it: 0 is a random "
        "policy's, 100 its expert's. Environments are gymnasium's version 5, the paper's were version 2. "
        "Trajectories are those of the recipe's folder: D4RL's own, or what kattn data collect recorded, whose "
        "returns are others.",
        claims={"primal_plus": ("reward",)},
        settings=_CONTROL,
    ),
    SequenceTable("Table 6: its time and memory", ("table6",), {"control_costs": COSTS}, settings=_CONTROL),
    GridTable(
        "Table 10: s in offline reinforcement learning",
        ("table10",),
        {"control": ("reward",)},
        printed_only=True,
        compared={"primal_plus": ()},
        settings=_CONTROL,
    ),
    SequenceTable(
        "Table 7(b): language modelling",
        ("table7b",),
        {"language": ("perplexity", *COSTS)},
        rows={"test": "WikiText-103"},
        claims={"primal_plus": ("perplexity",)},
        settings={
            "": {"name": "wikitext103", "context": "context 512", "size": "6 layers of 8 heads", "device": "four V100s"}
        },
    ),
    SequenceTable(
        "Table 8: Long-Range Arena with r-scores and without (e)",
        ("table8",),
        {"lra": ("top1",)},
        claims={**_CLASSIFIED, "primal": ("top1",)},
        compared={**_with("primal", "primal e"), **_with("primal_plus", "primal_plus e")},
        settings=_LRA,
    ),
    GridTable(
        "Table 9: η and s of Primal. on UEA time series",
        ("table9",),
        {"series": ("top1",)},
        printed_only=True,
        compared={"primal": ()},
        settings=_SERIES,
    ),
    SequenceTable(
        "Table 11: projections that depend on data or do not, on UEA time series",
        ("table11",),
        {"series": ("top1",)},
        claims=_CLASSIFIED,
        compared=_with("primal_plus", "primal_plus data-independent"),
        settings=_SERIES,
    ),
    SequenceTable(
        "Table 12: projections that depend on data or do not, on Long-Range Arena",
        ("table12",),
        {"lra": ("top1",)},
        "The headings of the paper's table do not fit: all but ListOps are another task's there.",
        claims=_CLASSIFIED,
        compared=_with("primal_plus", "primal_plus data-independent"),
        settings=_LRA,
    ),
]
