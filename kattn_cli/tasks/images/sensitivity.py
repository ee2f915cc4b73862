"""How sure a classifier is and how its loss moves with the image, for the question whether robustness is masking.

A model withstands attacks that follow its gradient also where there is none to follow: logits so large that the
cross-entropy is 0 in float32 have a gradient of exactly 0 (Carlini and Wagner, 2017). Margins and gradients that are
larger or smaller by the same factor are a matter of scale, not of robustness.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from kattn_cli.attacks.ball import Model, loss_gradient
from kattn_cli.console import console, print_wide
from kattn_cli.runs.csv_rows import replace_rows
from kattn_cli.tasks.images.evaluation import Step, Subject
from kattn_cli.training.evaluate import EVAL_BATCH, Batched, Outputs

SENSITIVITY_CSV = "sensitivity.csv"
_HEADINGS = {
    "margin_mean": "margin",
    "margin_median": "median",
    "logit_scale": "logits",
    "gradient_l1_mean": "gradient",
    "gradient_l1_median": "median",
    "zero_gradient_share": "zero gradient, %",
}


def margins(outputs: Outputs) -> Tensor:
    """Return the logit of each image's class less the highest of the others, ``(n,)`` float64; above 0 is right."""
    scores, label = outputs.scores.double(), outputs.labels[:, None]
    return scores.gather(1, label)[:, 0] - scores.scatter(1, label, -torch.inf).amax(1)


def gradient_norms(model: Model, split: Batched, batch_size: int = EVAL_BATCH) -> Tensor:
    """Return the ℓ1 norm of the gradient of each image's cross-entropy, by pixels of [0, 1]; ``(n,)`` float64."""
    norms = [loss_gradient(model, *batch).double().abs().flatten(1).sum(1) for batch in split.batches(batch_size)]
    return torch.cat(norms)


def measures(outputs: Outputs, norms: Tensor) -> dict[str, float]:
    """Return the columns of ``sensitivity.csv`` that are measured.

    ``margin_mean`` and ``margin_median`` of :func:`margins`; ``logit_scale``, the mean over images of the standard
    deviation of the logits over classes; ``gradient_l1_mean`` and ``gradient_l1_median`` of :func:`gradient_norms`;
    ``zero_gradient_share``, of 1, of images whose gradient is exactly 0.
    """
    found = {
        "margin_mean": margins(outputs).mean(),
        "margin_median": margins(outputs).quantile(0.5),
        "logit_scale": outputs.scores.double().std(1, correction=0).mean(),
        "gradient_l1_mean": norms.mean(),
        "gradient_l1_median": norms.quantile(0.5),
        "zero_gradient_share": (norms == 0).double().mean(),
    }
    return {name: value.item() for name, value in found.items()}


class Sensitivity:
    """What :func:`measures` finds of each run; one row for each split, images, weights and attention."""

    def __init__(self) -> None:
        self._found: list[tuple[Path, dict[str, Any]]] = []

    def steps(self, subject: Subject) -> list[Step]:
        """See :class:`~kattn_cli.tasks.images.evaluation.Part`."""
        return [partial(self._measure, subject)]

    def _measure(self, subject: Subject) -> str:
        model = subject.images("--sensitivity").model.requires_grad_(False)
        found = measures(subject.clean, gradient_norms(model, subject.split))
        same = ("split", "images", "run_as", "checkpoint", "step", "weights")
        row = {**{column: subject.clean_row[column] for column in same}, **found}
        replace_rows(subject.run.folder / SENSITIVITY_CSV, [row])
        self._found.append((subject.run.folder, row))
        return f"margin {found['margin_mean']:.2f}, gradient {found['gradient_l1_mean']:.3g}"

    def print(self) -> None:
        """Print a row for each run that was measured."""
        console.print(
            "\nMargin of the true class, deviation of the logits over classes, ℓ1 norm of the gradient of the loss by "
            "pixels of [0, 1]\n"
        )
        rows = []
        for folder, row in self._found:
            shown = {**row, "zero_gradient_share": 100 * row["zero_gradient_share"]}
            rows.append([str(folder), *(f"{shown[column]:.3g}" for column in _HEADINGS)])
        print_wide(["run", *_HEADINGS.values()], rows)
