"""Primal-Attention: its objective, and whether its scores solve the dual problem."""

from __future__ import annotations

from collections.abc import Iterator

from kattn_cli.audit.duality import chance_overlap, dual_regulariser, duality
from kattn_cli.audit.over_inputs import mean_and_deviation
from kattn_cli.audit.view import View, of_head
from kattn_cli.kernels.primal import CONVENTIONS
from kattn_cli.runs.csv_rows import Row


def dualities(view: View) -> Iterator[Row]:
    """J of each layer (in every row of its heads), and per head how far the dual equations are from holding."""
    for layer, mechanism, x in view.layers_with("dual_view"):
        kernel, e, r = mechanism.dual_view(x)
        weights = dual_regulariser(mechanism.regulariser, mechanism.convention, x.shape[1])
        found = duality(kernel, e, r, weights)
        chance = chance_overlap(kernel, e.shape[-1])
        objective, deviation = mean_and_deviation(mechanism.objective())
        in_each = {f"objective_{name}": mechanism.objective(name).mean().item() for name in CONVENTIONS}
        for head in range(kernel.shape[1]):
            yield {
                "epoch": view.moment.epoch,
                "layer": layer,
                "head": head,
                "objective": objective.item(),
                "objective_std": deviation.item(),
                **in_each,
                **{name: of_head(getattr(found, name), head)[0] for name in found._fields},
                "overlap_chance": of_head(chance, head)[0],
                "convention": mechanism.convention,
                "inputs": len(x),
            }
