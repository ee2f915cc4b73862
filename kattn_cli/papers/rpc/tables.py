"""The RPC-Attention paper's tables: images clean, corrupted, out of distribution, under attack; language."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from kattn_cli.papers.beside import ImageTable, Layout, PaperTable, SequenceTable, on_imagenet
from kattn_cli.papers.described import FAN, SEGMENTER, Described

BASE = "12 × 768"
ASYMMETRIC = ("softmax", "rpc asymmetric", "rpc sym/asym")
ALL_BUT_SQUARE = {name: name for name in ("pgd", "fgsm", "spsa", "sld", "cw", "noise", "autoattack")}
_CLEAN = {"clean": ("top1", "top5"), "shifted": ("top1",), "ood": ("aupr",)}
_ALL = {**_CLEAN, "corrupted": ("top1", "mce")}
_ATTACKED = {"attacked": ("top1", "top5")}
_ATTACKS = (
    "The paper's ε, all ℓ∞: 6/255 for PGD and FGSM, 1/255 for AutoAttack, 0.1 for SPSA. Its program attacks images "
    "that are normalised already."
)


@dataclass(frozen=True)
class _Any(ImageTable):
    """Of any size; ``symmetric base`` is of the size of Tables 7 and 8."""

    layout: Layout = "numbers"

    def model(self, run: Described) -> str | None:
        model = super().model(run)
        return f"{model} base" if model and run.facts["size"] == BASE else model

    def baselines(self, model: str) -> Sequence[str]:
        return ("symmetric base",) if model.endswith(" base") else ("symmetric",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return on_imagenet(BASE if model.endswith(" base") else "12 × 192", 300)


class _Tiny(_Any):
    """All that is not of base size."""

    def model(self, run: Described) -> str | None:
        return None if run.facts["size"] == BASE else super().model(run)


class _Base(_Any):
    """What is of base size."""

    def model(self, run: Described) -> str | None:
        return super().model(run) if run.facts["size"] == BASE else None


@dataclass(frozen=True)
class _Fan(ImageTable):
    """FAN with symmetric attention, and with RPC-Attention in its first layer."""

    layout: Layout = "numbers"

    def model(self, run: Described) -> str | None:
        if run.facts["architecture"] != FAN:
            return None
        return {"symmetric": "FAN-tiny", "rpc 4": "RPC-FAN-tiny"}.get(run.model, run.model)

    def baselines(self, model: str) -> Sequence[str]:
        return ("FAN-tiny",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return {**on_imagenet("12 × 192", 300), "architecture": FAN}


class _Segmented(ImageTable):
    """Segmenter, whose backbone alone has another attention."""

    def model(self, run: Described) -> str | None:
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

    def model(self, run: Described) -> str | None:
        model = super().model(run)
        return model if model in ASYMMETRIC else None

    def worth(self, models: Collection[str]) -> bool:
        """Return whether there is more than softmax attention, of which alone the table says nothing."""
        return bool({*models} - {"softmax"})

    def baselines(self, model: str) -> Sequence[str]:
        return ("softmax",)


class _Language(SequenceTable):
    """Beside symmetric attention where there is some, but for asymmetric RPC-Attention."""

    def baselines(self, model: str) -> Sequence[str]:
        return ("softmax",) if model == "rpc asymmetric" else ("symmetric", "softmax")


_FINE_TUNED = ("top1", "validation_top1")
_FINE_TUNING = {"pursuit": "2 iterations in all layers"}

TABLES: list[PaperTable] = [
    _Tiny("Table 1: clean, corrupted, out of distribution", ("table1",), _ALL),
    _Tiny("Table 2: under attack", ("table2",), _ATTACKED, _ATTACKS, ALL_BUT_SQUARE),
    _Any("Table 4: by type of corruption, mean over five severities", ("table4",), {"by_type": ("top1", "mce")}),
    _Tiny("Table 5: under the Square attack", ("table5",), _ATTACKED, rows={"square": "square"}),
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
    _Language(
        "Table 3: perplexity, clean and with swapped words",
        ("table3",),
        {"language": ("perplexity", "swapped_perplexity")},
        "The paper's windows move on by one token. What share of the words it swaps, it does not say: its one "
        "number is for all of ours.",
        {"validation": "WikiText-103 validation", "test": "WikiText-103 test"},
        claims={"rpc": ("perplexity", "swapped_perplexity")},
        settings={"": {"name": "wikitext103", "pursuit": "4 iterations in layers 1 to 4"}},
    ),
    _Language(
        "Tables 11 and 12: sentences, with RPC-Attention at fine-tuning alone",
        ("table12", "table11"),
        {"sentences": ("top1", "validation_top1", "train_top1")},
        claims={"rpc": _FINE_TUNED, "rpc asymmetric": _FINE_TUNED},
        settings={
            "": {"size": "a sparse mixture of experts, pre-trained on WikiText-103", **_FINE_TUNING},
            "SST-5": {"size": "a transformer of 2019, pre-trained elsewhere", **_FINE_TUNING},
        },
    ),
]
