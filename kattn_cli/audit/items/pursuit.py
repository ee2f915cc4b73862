"""RPC-Attention's pursuit on trained keys: does it converge, and does it separate planted corruption?"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from torch import Tensor

from kattn_cli.audit.pursuit import planted, principal_component_pursuit, pursuit_trace, recovery
from kattn_cli.audit.view import View, of_head
from kattn_cli.kernels.pap import CONVENTIONS, Pursuit, pap_steps
from kattn_cli.runs.csv_rows import Row

ITERATIONS = 20
"""To see whether more of them would converge."""
SHARE = 0.05
SIZES = (2, 4, 8, 16, 32)
PCP_ITERATIONS = 300
"""At most: it ends where it has converged."""
INPUTS = 16
"""With outliers, since the yardstick decomposes every matrix many times."""


def traces(view: View) -> Iterator[Row]:
    """``‖k − L − S‖ / ‖k‖`` and the share of S that is not 0, in each convention, on beyond the recipe's iterations."""
    for layer, mechanism, x in view.layers_with("pursued"):
        q, k, v = mechanism.pursued(x)
        own: Pursuit = mechanism.pursuit
        for convention in CONVENTIONS:
            longer = replace(own, convention=convention, iterations=max(ITERATIONS, own.iterations))
            trace = pursuit_trace(k, v, longer, q)
            for index, (residual, share) in enumerate(zip(*trace, strict=True)):
                for head in range(k.shape[1]):
                    mean, deviation = of_head(residual, head)
                    yield {
                        "layer": layer,
                        "head": head,
                        "convention": convention,
                        "iteration": index + 1,
                        "residual": mean,
                        "residual_std": deviation,
                        "nonzero_share": of_head(share, head)[0],
                        "recipe_iterations": own.iterations,
                        "recipe_convention": own.convention,
                        "inputs": len(k),
                    }


def planted_outliers(view: View) -> Iterator[Row]:
    """The support of S against outliers added to 5 % of the keys' entries, beside what the convex program finds."""
    for layer, mechanism, x in view.layers_with("pursued"):
        q, k, v = mechanism.pursued(x[:INPUTS])
        for size in SIZES:
            corrupted, mask = planted(k, SHARE, size, view.generator())
            for method, iterations, sparse in _supports(mechanism.pursuit, q, corrupted, v):
                found = recovery(sparse, mask)
                for head in range(k.shape[1]):
                    precision, recall, share = (part[:, head].nanmean().item() for part in found)
                    yield {
                        "layer": layer,
                        "head": head,
                        "method": method,
                        "iterations": iterations,
                        "share": SHARE,
                        "size": size,
                        "precision": precision,
                        "recall": recall,
                        "found_share": share,
                        "inputs": len(k),
                    }


def _supports(own: Pursuit, q: Tensor | None, k: Tensor, v: Tensor) -> Iterator[tuple[str, int, Tensor]]:
    for convention in CONVENTIONS:
        *_, (_, sparse, _) = pap_steps(k, v, replace(own, convention=convention), q=q)
        yield convention, own.iterations, sparse
    yield "pcp", PCP_ITERATIONS, principal_component_pursuit(k, tolerance=1e-4, iterations=PCP_ITERATIONS)[1]
