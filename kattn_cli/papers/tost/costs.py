"""The ToST paper's costs of language models, which it prints as multiples of softmax attention's (§4.3, Table 4)."""

from __future__ import annotations

from kattn_cli.papers.costs import ModelCosts

LENGTHS = {4096: "length 4k", 8192: "length 8k"}

COSTS = ModelCosts(
    table="table4",
    row=lambda n: LENGTHS.get(n, ""),
    models={"decoder/softmax": "softmax", "decoder/tssa": "tssa"},
    metrics={("time", ""): ("relative_time", "×"), ("memory", ""): ("relative_memory", "×")},
)
