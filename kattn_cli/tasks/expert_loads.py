"""What mixtures of experts were asked for: ``experts.csv`` of a run, from its training and from ``kattn eval``."""

from __future__ import annotations

from typing import Any

from kattn_cli.models import AttentionModel
from kattn_cli.models.experts import ExpertLoad
from kattn_cli.runs.csv_rows import replace_rows
from kattn_cli.runs.run import Run
from kattn_cli.training.opened import OpenRun

EXPERTS_CSV = "experts.csv"


def take_loads(model: AttentionModel, training: bool) -> dict[int, ExpertLoad]:
    """Return by layer what was asked since this was last called; empty of a model without experts.

    Args:
        training: in ``train`` mode, in which alone tokens are dropped, or else in ``eval`` mode.
    """
    loads = {}
    for layer, module in enumerate(model.experts()):
        if (load := module.take_load(training)) is not None:
            loads[layer] = ExpertLoad(*(one.tolist() for one in (load.asked, load.dropped, load.probability)))
    return loads


def note_epoch(run: Run, model: AttentionModel, epoch: int) -> None:
    """Write down the load of an epoch of training, of this process's part of the data, and what was dropped in all.

    Without experts nothing is written.
    """
    loads = take_loads(model, training=True)
    if not loads:
        return
    replace_rows(run.folder / EXPERTS_CSV, rows(loads, split="train", epoch=epoch, checkpoint=""))
    run.update(dropped_by_experts=_dropped(loads))


def note_evaluation(opened: OpenRun, split: str, limit: int | None = None) -> str:
    """Write down the load of a split that a run was evaluated on since the last call; return it in a line.

    Without experts nothing is written, and the line is empty.

    Args:
        limit: how many of the split there were, if not all.
    """
    loads = take_loads(opened.model, training=False)
    if loads:
        of_weights = {"checkpoint": opened.checkpoint, "step": opened.step, "weights": opened.weights}
        found = rows(loads, split=split, epoch="", asked=limit or "all", **of_weights)
        replace_rows(opened.run.folder / EXPERTS_CSV, found)
    return summary(loads)


def rows(loads: dict[int, ExpertLoad], **columns: Any) -> list[dict[str, Any]]:
    """Return a row for each layer and expert; shares are of 1."""
    return [
        {
            **columns,
            "layer": layer,
            "expert": expert,
            "tokens": int(load.asked[expert]),
            "share": load.shares[expert],
            "probability": load.probability[expert],
            "dropped": int(load.dropped[expert]),
            "dropped_share": load.dropped_shares[expert],
        }
        for layer, load in loads.items()
        for expert in range(len(load.asked))
    ]


def summary(loads: dict[int, ExpertLoad]) -> str:
    """Return who had most and least, and what was dropped, in a line; empty without experts."""
    if not loads:
        return ""
    shares = [
        (share, f"{100 * share:.1f} % (layer {layer}, expert {expert})")
        for layer, load in loads.items()
        for expert, share in enumerate(load.shares)
    ]
    count = len(next(iter(loads.values())).asked)
    evenness = sum(load.evenness for load in loads.values()) / len(loads)
    return (
        f"experts: most loaded {max(shares)[1]}, least {min(shares)[1]}, even {100 / count:.1f} %; "
        f"evenness {evenness:.3f}; dropped {100 * _dropped(loads):.1f} %"
    )


def _dropped(loads: dict[int, ExpertLoad]) -> float:
    return sum(load.dropped_share for load in loads.values()) / len(loads)
