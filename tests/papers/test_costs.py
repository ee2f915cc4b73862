"""What the papers print of whole models' costs, beside ours."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from kattn_cli.papers import PAPERS
from kattn_cli.papers.costs import QUANTITIES, beside_the_papers, published_cost
from kattn_cli.recipe.files import find_recipes
from kattn_cli.tables.costs import model_ratios

SYM, RPC = "imagenet/symvit_tiny", "imagenet/rpc_symvit_tiny"


MODELS = {model: name for name, paper in PAPERS.items() if paper.costs for model in paper.costs.models}


def row(model: str, attention: str, milliseconds: float, **more: Any) -> dict[str, Any]:
    setting = {"version": "fast", "pass": "forward", "device": "cpu", "dtype": "float32", "n": 197, "batch": 2}
    memory = {"peak_mib": 30.0, "held_mib": 20.0, "status": "ok"}
    return {
        "model": model,
        "attention": attention,
        **setting,
        **memory,
        "milliseconds_per_sample": milliseconds,
        **more,
    }


def table() -> pd.DataFrame:
    return pd.DataFrame(
        [
            row(SYM, "symmetric", 10),
            row(RPC, "rpc", 12, peak_mib=55.0),
            row(RPC, "rpc", 40, version="slow"),
            row("imagenet/tost_tiny", "tssa", 6, n=196),
            row("imagenet/deit_small", "softmax", float("nan"), status="out of memory"),
            row(SYM, "symmetric", 30, **{"pass": "training step"}),
            row(RPC, "rpc", 33, **{"pass": "training step"}),
        ]
    )


def test_the_papers_numbers() -> None:
    found = beside_the_papers(table()).set_index(["model", "pass", "version"])
    forward, step = found.loc[(RPC, "forward", "fast")], found.loc[(RPC, "training step", "fast")]
    assert (forward["published_time"], forward["published_time_ratio"]) == (0.010, 1)
    assert (step["published_time"], step["published_time_unit"]) == (0.082, "s")
    assert step["published_time_ratio"] == pytest.approx(0.082 / 0.079)
    assert (step["published_memory"], forward["published_memory"]) == (1441, 1181)
    assert (forward["published_flops"], forward["published_flops_unit"]) == (1.22, "M")
    assert pd.isna(found.loc[("imagenet/tost_tiny", "forward", "fast"), "published_time"])


def test_another_papers_numbers_are_not_compared() -> None:
    """The first model is the RPC paper's, this one the Primal paper's."""
    costs = pd.DataFrame([row(SYM, "symmetric", 10, **{"pass": "training step"})])
    costs = pd.concat([costs, pd.DataFrame([row("imagenet/deit_small", "softmax", 20, **{"pass": "training step"})])])
    last = beside_the_papers(costs).iloc[-1]
    assert (last["published_time"], last["published_time_unit"], last["time_ratio"]) == (2425.5, "s/1k steps", 2)
    assert pd.isna(last["published_time_ratio"])


def decoders() -> pd.DataFrame:
    times = {("softmax", 4096): 100, ("softmax", 8192): 300, ("tssa", 4096): 70, ("tssa", 8192): 150}
    return pd.DataFrame([row(f"decoder/{name}", name, time, n=n) for (name, n), time in times.items()])


def test_lengths_have_numbers_of_their_own() -> None:
    found = beside_the_papers(decoders())
    assert found["published_time"].tolist() == [1, 1, 0.60, 0.46]
    assert found["published_memory_ratio"].tolist() == [1, 1, 0.41, 0.24]


def test_published_models_are_recipes_of_ours() -> None:
    """But for the RPC paper's 5 and 6 iterations, which a recipe's comment says how to make."""
    named = set(MODELS) - {f"{RPC}_5", f"{RPC}_6", "decoder/softmax", "decoder/tssa"}
    assert all(len(find_recipes(name)) == 1 for name in named)
    assert {SYM, RPC, "imagenet/rpc_all_symvit_tiny", "imagenet/deit_small"} <= named


def test_each_published_model_has_its_numbers() -> None:
    """Of a training step at 4,096 tokens: time and memory of all, operations of the RPC paper's alone."""
    told = {
        model: [quantity for quantity in QUANTITIES if published_cost(model, "training step", 4096, quantity)]
        for model in MODELS
    }
    both = ["time", "memory"]
    assert told == {model: [*both, "flops"] if paper == "rpc" else both for model, paper in MODELS.items()}
    assert published_cost("imagenet/deit_small", "forward", 197, "time") is None
    assert published_cost("decoder/tssa", "forward", 1024, "time") is None


def test_multiples_of_the_first_model() -> None:
    found = model_ratios(table())
    assert found["time_ratio"].tolist() == pytest.approx([1, 1.2, 4, 0.6, float("nan"), 1, 1.1], nan_ok=True)
    assert found["memory_mib"].tolist()[:2] == [50, 75]
    assert found["memory_ratio"].tolist()[:2] == [1, 1.5]


def test_lengths_are_compared_with_their_own() -> None:
    found = model_ratios(decoders())
    assert found["time_ratio"].tolist() == [1, 1, 0.7, 0.5]
