"""The papers' tables of series, Long-Range Arena and language: which numbers they have and what they claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from kattn_cli.papers.published import PaperName

ACCURACIES = ("top1", "validation_top1", "train_top1", "reward")
"""All other metrics are the better the lower."""
COSTS = ("seconds_per_1k_steps", "memory_gb")


@dataclass(frozen=True)
class Part:
    """One table of ours.

    ``metrics``: what it holds, first what the paper is about; ``tables``: the paper's tables that it is beside, first
    the one for what the paper has no number of. ``claims``: models that the paper says are better than the baseline,
    and by which metrics. ``rows``: the paper's rows by ours, where they are not the same; others are left out then.
    ``compared``: of an ablation, its models, each with what it is compared with; other models are left out then.
    """

    kind: str
    title: str
    tables: tuple[str, ...]
    metrics: tuple[str, ...]
    claims: Mapping[str, tuple[str, ...]]
    rows: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    compared: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def baselines(self, paper: PaperName, model: str) -> Sequence[str]:
        """The models that the paper compares ``model`` with, first the one that counts most."""
        if self.compared:
            return self.compared.get(model, ())
        return ("symmetric", "softmax") if paper == "rpc" and model != "rpc asymmetric" else ("softmax",)


def _with(model: str, without: str) -> dict[str, tuple[str, ...]]:
    """An ablation's model, compared with the one that lacks a part of it."""
    return {model: (without,), without: ()}


_CLASSIFIED = {"primal_plus": ("top1",)}
_FINE_TUNED = ("top1", "validation_top1")
PARTS: dict[PaperName, list[Part]] = {
    "primal": [
        Part(
            "series",
            "Tables 1 and 2: UEA time series",
            ("table1", "table2"),
            ("top1", "seconds_per_epoch", "memory_gb"),
            _CLASSIFIED,
            note="Of memory, the paper has the mean over the sets alone: softmax 10.9 GB, Primal.+ 6.5, Primal. 2.7.",
        ),
        Part("lra", "Tables 3 and 4: Long-Range Arena", ("table3", "table4"), ("top1", *COSTS), _CLASSIFIED),
        Part(
            "control",
            "Table 5: offline reinforcement learning",
            ("table5",),
            ("reward",),
            {"primal_plus": ("reward",)},
            note="The mean over episodes that were asked for the greatest return, as D4RL normalises it: 0 is a random "
            "policy's, 100 its expert's. Environments are gymnasium's version 5, the paper's were version 2. "
            "Trajectories are those of the recipe's folder: D4RL's own, or what kattn data collect recorded, whose "
            "returns are others.",
        ),
        Part("control_costs", "Table 6: its time and memory", ("table6",), COSTS, {}),
        Part(
            "control",
            "Table 10: s in offline reinforcement learning",
            ("table10",),
            ("reward",),
            {},
            compared={"primal_plus": ()},
        ),
        Part(
            "language",
            "Table 7(b): language modelling",
            ("table7b",),
            ("perplexity", *COSTS),
            {"primal_plus": ("perplexity",)},
            {"test": "WikiText-103"},
        ),
        Part(
            "lra",
            "Table 8: Long-Range Arena with r-scores and without (e)",
            ("table8",),
            ("top1",),
            {**_CLASSIFIED, "primal": ("top1",)},
            compared={**_with("primal", "primal e"), **_with("primal_plus", "primal_plus e")},
        ),
        Part(
            "series",
            "Table 9: η and s of Primal. on UEA time series",
            ("table9",),
            ("top1",),
            {},
            compared={"primal": ()},
        ),
        Part(
            "series",
            "Table 11: projections that depend on data or do not, on UEA time series",
            ("table11",),
            ("top1",),
            _CLASSIFIED,
            compared=_with("primal_plus", "primal_plus data-independent"),
        ),
        Part(
            "lra",
            "Table 12: projections that depend on data or do not, on Long-Range Arena",
            ("table12",),
            ("top1",),
            _CLASSIFIED,
            note="The headings of the paper's table do not fit: all but ListOps are another task's there.",
            compared=_with("primal_plus", "primal_plus data-independent"),
        ),
    ],
    "tost": [
        Part("lra", "Table 3: Long-Range Arena", ("table3",), ("top1", *COSTS), {"tssa": ("top1",)}),
        Part("zero_shot", "Table 4: loss on the test sets of corpora", ("table4",), ("loss",), {}),
    ],
    "rpc": [
        Part(
            "language",
            "Table 3: perplexity, clean and with swapped words",
            ("table3",),
            ("perplexity", "swapped_perplexity"),
            {"rpc": ("perplexity", "swapped_perplexity")},
            {"validation": "WikiText-103 validation", "test": "WikiText-103 test"},
            "The paper's windows move on by one token. What share of the words it swaps, it does not say: its one "
            "number is for all of ours.",
        ),
        Part(
            "sentences",
            "Tables 11 and 12: sentences, with RPC-Attention at fine-tuning alone",
            ("table12", "table11"),
            ACCURACIES,
            {"rpc": _FINE_TUNED, "rpc asymmetric": _FINE_TUNED},
        ),
    ],
}


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
    ("primal", "control"): {"": {"context": "context 20", "size": "3 × 256", "device": "one P100"}},
    ("primal", "control_costs"): {"": {"context": "context 20", "size": "3 × 256", "device": "one P100"}},
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
    """What the paper ran, as far as it says, by the keys of :attr:`~kattn_cli.papers.sequence_runs.SequenceRun`."""
    settings = _OWN[paper, kind]
    return settings.get(row, settings[""])
