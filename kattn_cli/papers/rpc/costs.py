"""The RPC-Attention paper's costs of whole models (E.9, Table 13)."""

from __future__ import annotations

from kattn_cli.papers.costs import ModelCosts

COSTS = ModelCosts(
    table="table13",
    row=lambda n: "ImageNet-1K",
    models={
        "imagenet/symvit_tiny": "symmetric",
        "imagenet/rpc_symvit_tiny": "rpc 4",
        "imagenet/rpc_symvit_tiny_5": "rpc 5",
        "imagenet/rpc_symvit_tiny_6": "rpc 6",
        "imagenet/rpc_all_symvit_tiny": "rpc 2 all",
    },
    metrics={
        ("time", "training step"): ("training_seconds_per_sample", "s"),
        ("time", "forward"): ("test_seconds_per_sample", "s"),
        ("memory", "training step"): ("training_memory_mb", "MB"),
        ("memory", "forward"): ("test_memory_mb", "MB"),
        ("flops", ""): ("flops_per_sample_m", "M"),
    },
    notes={
        "flops": (
            "RPC paper, Table 13: its 1.17 to 1.35 M flops a sample cannot be right for a ViT-tiny at 224 × 224, which "
            "takes 1.1 to 1.3 G multiply-adds, twice that in GFLOP as counted here"
        )
    },
)
