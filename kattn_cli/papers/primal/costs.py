"""The Primal-Attention paper's costs of whole models (§5, Table 7a)."""

from __future__ import annotations

from kattn_cli.papers.costs import ModelCosts

COSTS = ModelCosts(
    table="table7a",
    row=lambda n: "ImageNet",
    models={"imagenet/deit_small": "softmax", "imagenet/primal_plus_deit_small": "primal_plus"},
    metrics={
        ("time", "training step"): ("seconds_per_1k_steps", "s/1k steps"),
        ("memory", "training step"): ("memory_gb", "GB"),
    },
)
