"""Primal-Attention's paper on offline reinforcement learning (§5)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.finding import Claim
from kattn_cli.papers.sequences import better_on_average, within

HOPPER = "control/small/hopper"
COMPARABLE = 1.25
"""Times as much within which two models count as comparable; the paper's own are 1.13 of the time, and the memory."""

CLAIMS = [
    *(
        Claim(
            "§5, Table 5",
            f"Primal.+DT gets a higher reward than {name}.",
            "difference of the normalised score, mean over the data sets measured (the paper has nine), paired by "
            "seed; holds above 0 points",
            f"kattn eval {HOPPER}",
            partial(better_on_average, "primal", "table5", "control", "primal_plus", (base,), 0.0, metric="reward"),
        )
        for base, name in (("softmax", "Decision Transformer"), ("flowformer", "Flowformer"))
    ),
    *(
        Claim(
            "§5, Table 6",
            f"Primal.+DT takes about the {quantity} that Decision Transformer takes.",
            f"{measured} over softmax's, each data set by itself, paired by seed; holds below {COMPARABLE:g}",
            f"kattn train {HOPPER}",
            partial(within, "primal", "table6", "control_costs", metric, ("primal_plus", "softmax"), COMPARABLE),
        )
        for metric, quantity, measured in (
            ("seconds_per_1k_steps", "time", "time a step"),
            ("memory_gb", "memory", "peak memory"),
        )
    ),
]
