"""Its costs of whole models."""

from __future__ import annotations

from kattn_cli.papers.costs import ModelCosts

COSTS = ModelCosts(
    table="table2",
    row=lambda n: "model",
    models={"toy/softmax": "softmax", "toy/tssa": "tssa"},
    metrics={("time", "forward"): ("seconds", "s")},
)
