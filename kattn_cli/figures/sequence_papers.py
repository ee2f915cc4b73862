"""The papers' tables of series, Long-Range Arena and language: which numbers they have and what they claim."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pandas as pd

import kattn_cli
from kattn_cli.figures.paper_rows import Published

PaperName = Literal["primal", "tost", "rpc"]
NAMES: dict[PaperName, str] = {"primal": "Primal-Attention", "tost": "ToST", "rpc": "RPC-Attention"}
PUBLISHED = Path(kattn_cli.__file__).parent / "papers" / "sequences.csv"
ACCURACIES = ("top1", "validation_top1", "train_top1")
"""All other metrics are the better the lower."""
COSTS = ("seconds_per_1k_steps", "memory_gb")


@dataclass(frozen=True)
class Part:
    """One table of ours.

    ``metrics``: what it holds, first what the paper is about; ``table``: the paper's table, for what the paper has no
    number of. ``claims``: models that the paper says are better than the baseline, and by which metrics. ``rows``: the
    paper's rows by ours, where they are not the same; others are left out then.
    """

    kind: str
    title: str
    table: str
    metrics: tuple[str, ...]
    claims: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, str] = field(default_factory=dict)
    note: str = ""


_CLASSIFIED = {"primal_plus": ("top1",)}
_FINE_TUNED = ("top1", "validation_top1")
PARTS: dict[PaperName, list[Part]] = {
    "primal": [
        Part(
            "series",
            "Tables 1 and 2: UEA time series",
            "table1",
            ("top1", "seconds_per_epoch", "memory_gb"),
            _CLASSIFIED,
            note="Of memory, the paper has the mean over the sets alone: softmax 10.9 GB, Primal.+ 6.5, Primal. 2.7.",
        ),
        Part("lra", "Tables 3 and 4: Long-Range Arena", "table3", ("top1", *COSTS), _CLASSIFIED),
        Part(
            "language",
            "Table 7(b): language modelling",
            "table7b",
            ("perplexity", *COSTS),
            {"primal_plus": ("perplexity",)},
            {"test": "WikiText-103"},
        ),
    ],
    "tost": [
        Part("lra", "Table 3: Long-Range Arena", "table3", ("top1", *COSTS), {"tssa": ("top1",)}),
        Part("zero_shot", "Table 4: loss on the test sets of corpora", "table4", ("loss",), {}),
    ],
    "rpc": [
        Part(
            "language",
            "Table 3: perplexity, clean and with swapped words",
            "table3",
            ("perplexity", "swapped_perplexity"),
            {"rpc": ("perplexity", "swapped_perplexity")},
            {"validation": "WikiText-103 validation", "test": "WikiText-103 test"},
            "The paper's windows move on by one token. What share of the words it swaps, it does not say: its one "
            "number is for all of ours.",
        ),
        Part(
            "sentences",
            "Tables 11 and 12: sentences, with RPC-Attention at fine-tuning alone",
            "table12",
            ACCURACIES,
            {"rpc": _FINE_TUNED, "rpc asymmetric": _FINE_TUNED},
        ),
    ],
}


def baselines(paper: PaperName, model: str) -> tuple[str, ...]:
    """The models that the paper compares ``model`` with, first the one that counts most."""
    return ("symmetric", "softmax") if paper == "rpc" and model != "rpc asymmetric" else ("softmax",)


def published(paper: PaperName) -> Published:
    """The paper's numbers."""
    table = pd.read_csv(PUBLISHED)
    return table[table["paper"] == paper].set_index(["table", "row", "metric", "model"])["value"].to_dict()


_V100 = {"size": "2 × 64", "device": "one V100"}
_FINE_TUNING = {"pursuit": "2 iterations in all layers"}
_OWN: dict[tuple[PaperName, str], dict[str, dict[str, str]]] = {
    ("primal", "series"): {"": {"size": "2 × 512", "device": "one P100"}},
    ("primal", "lra"): {
        "": {},
        "ListOps": {"length": "up to 2,000 tokens", "training": "96,000 to train on", **_V100},
        "Text": {"length": "up to 4,000 bytes", **_V100},
        "Retrieval": {"length": "up to 4,000 bytes", **_V100},
        "Image": {"length": "32 × 32 pixels", "training": "50,000 to train on", **_V100},
        "Pathfinder": {"length": "32 × 32 pixels", "training": "160,000 to train on", **_V100},
    },
    ("primal", "language"): {
        "": {"name": "wikitext103", "context": "context 512", "size": "6 layers of 8 heads", "device": "four V100s"}
    },
    ("tost", "lra"): {
        "": {},
        "ListOps": {"length": "up to 2,000 tokens", "size": "6 × 512", "epochs": "90,000 steps"},
        "Text": {"length": "up to 4,000 bytes", "size": "4 × 256", "epochs": "25,000 steps"},
        "Retrieval": {"length": "up to 4,000 bytes", "size": "6 × 128", "epochs": "91,960 steps"},
        "Image": {"length": "32 × 32 pixels", "size": "8 × 64", "epochs": "180,000 steps"},
        "Pathfinder": {"length": "32 × 32 pixels", "size": "2 × 64", "epochs": "200,000 steps"},
    },
    ("tost", "zero_shot"): {
        "": {"name": "openwebtext", "context": "context 1,024", "size": "12 × 768", "epochs": "600,000 steps"}
    },
    ("rpc", "language"): {"": {"name": "wikitext103", "pursuit": "4 iterations in layers 1 to 4"}},
    ("rpc", "sentences"): {
        "": {"size": "a sparse mixture of experts, pre-trained on WikiText-103", **_FINE_TUNING},
        "SST-5": {"size": "a transformer of 2019, pre-trained elsewhere", **_FINE_TUNING},
    },
}


def own_setting(paper: PaperName, kind: str, row: str) -> Mapping[str, str]:
    """What the paper ran, as far as it says, by the keys of :attr:`~kattn_cli.figures.sequence_runs.SequenceRun`."""
    settings = _OWN[paper, kind]
    return settings.get(row, settings[""])
