"""What the papers print of whole models' costs, by the name of the recipe whose model they measured."""

from __future__ import annotations

from dataclasses import dataclass

from kattn_cli.papers.published import PaperName, numbers

PUBLISHED = ("time", "memory", "flops")
"""The quantities of which the papers print something."""
MODELS: dict[str, tuple[PaperName, str]] = {
    "imagenet/symvit_tiny": ("rpc", "symmetric"),
    "imagenet/rpc_symvit_tiny": ("rpc", "rpc 4"),
    "imagenet/rpc_symvit_tiny_5": ("rpc", "rpc 5"),
    "imagenet/rpc_symvit_tiny_6": ("rpc", "rpc 6"),
    "imagenet/rpc_all_symvit_tiny": ("rpc", "rpc 2 all"),
    "imagenet/deit_small": ("primal", "softmax"),
    "imagenet/primal_plus_deit_small": ("primal", "primal_plus"),
    "decoder/softmax": ("tost", "softmax"),
    "decoder/tssa": ("tost", "tssa"),
}
"""Model → the paper that measured it, and its name there."""
_TABLES: dict[PaperName, str] = {"rpc": "table13", "primal": "table7a", "tost": "table4"}
_METRICS: dict[PaperName, dict[tuple[str, str], tuple[str, str]]] = {
    "rpc": {
        ("time", "training step"): ("training_seconds_per_sample", "s"),
        ("time", "forward"): ("test_seconds_per_sample", "s"),
        ("memory", "training step"): ("training_memory_mb", "MB"),
        ("memory", "forward"): ("test_memory_mb", "MB"),
        ("flops", ""): ("flops_per_sample_m", "M"),
    },
    "primal": {
        ("time", "training step"): ("seconds_per_1k_steps", "s/1k steps"),
        ("memory", "training step"): ("memory_gb", "GB"),
    },
    "tost": {("time", ""): ("relative_time", "×"), ("memory", ""): ("relative_memory", "×")},
}
"""Quantity and pass, none where the paper does not say of which → metric and unit."""
_LENGTHS = {4096: "length 4k", 8192: "length 8k"}


@dataclass(frozen=True)
class Cost:
    """A number of a paper and its unit."""

    paper: PaperName
    value: float
    unit: str


def published_cost(model: str, what: str, n: int, quantity: str) -> Cost | None:
    """The paper's number of a model, nothing where it has none.

    Where the paper does not say of which pass or length (``n`` tokens), it is taken for any.
    """
    if model not in MODELS:
        return None
    paper, name = MODELS[model]
    known = _METRICS[paper]
    metric, unit = known.get((quantity, what)) or known.get((quantity, "")) or ("", "")
    row = {"rpc": "ImageNet-1K", "primal": "ImageNet", "tost": _LENGTHS.get(n, "")}[paper]
    value = numbers(paper).get((_TABLES[paper], row, metric, name))
    return None if value is None else Cost(paper, value, unit)
