"""``kattn spectrum``: singular-value decay of what each head does, per layer, and over training."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kattn_cli.audit.spectrum import (
    EXACT_UP_TO,
    Spectra,
    explained_variance,
    joined,
    ranks,
    spectra_of,
    spectra_of_values,
)
from kattn_cli.audit.view import mean_and_deviation
from kattn_cli.console import console, progress_bar
from kattn_cli.data import SequenceSplit
from kattn_cli.device import device_name
from kattn_cli.experiment.run import followed
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.training.opened import Moment

SPECTRUM_CSV = "spectrum.csv"
RANKS_CSV = "effective_rank.csv"
BATCH = 64
ENTRIES = 2**25
"""Of attention matrices at a time."""
SHOWN = 256
"""Of longer spectra so many values are written, evenly spaced."""


def spectra_of_runs(
    runs: Sequence[Run], *, device: torch.device, inputs: int, checkpoint: str, exact_up_to: int = EXACT_UP_TO
) -> list[Run]:
    """Write ``spectrum.csv`` and ``effective_rank.csv`` into each run, over the first ``inputs`` validation images.

    The ranks are those of every kept epoch, the spectra of the chosen weights alone. Returns the runs that have at
    least one layer with something to decompose.
    """
    written = []
    with progress_bar("weights") as bar:
        for run in runs:
            record = provenance(device_name(device))
            spectra: list[dict[str, Any]] = []
            counted: list[dict[str, Any]] = []
            for _, moment in followed(run, device, checkpoint, bar):
                for found, about in _layers(moment, inputs, exact_up_to):
                    counted += _rank_rows(found, about)
                    spectra += _spectrum_rows(found, about) if moment.chosen else []
            if counted:
                write_rows(run.folder / SPECTRUM_CSV, spectra)
                write_rows(run.folder / RANKS_CSV, counted)
                run.add_measurement(record)
                written.append(run)
    return written


@torch.no_grad()
def _layers(moment: Moment, inputs: int, exact_up_to: int) -> Iterator[tuple[Spectra, dict[str, Any]]]:
    """Yield the spectra of each layer that has them over the inputs, and what its rows have in common."""
    opened = moment.opened
    split = _of_one_length(opened.data.splits["validation"], inputs).to(opened.model.device)
    mechanisms = opened.model.mechanisms()
    layers = [layer for layer, one in enumerate(mechanisms) if _decomposes(one)]
    if moment.chosen:
        _tell_without(moment, sorted(set(range(len(mechanisms))) - set(layers)))
    generator = torch.Generator().manual_seed(0)
    found: dict[int, list[Spectra]] = {layer: [] for layer in layers}
    seen = 0
    for sample, labels in split.batches(_batch_size(moment, split)):
        seen += len(labels)
        entering = opened.model.attention_inputs(sample)
        for layer in layers:
            found[layer].append(_spectra(mechanisms[layer], entering[layer], generator, exact_up_to))
    for layer in layers:
        yield (
            joined(found[layer]),
            {
                "epoch": moment.epoch,
                "layer": layer,
                "layer_mechanism": type(mechanisms[layer]).__name__,
                "inputs": seen,
                "split": opened.data.chosen_on,
                "checkpoint": moment.checkpoint,
                "step": opened.step,
                "weights": opened.weights,
            },
        )


def _of_one_length(split: Any, inputs: int) -> Any:
    """Return the first ``inputs`` of a split; of sequences of several lengths, whose matrices differ, the longest."""
    if isinstance(split, SequenceSplit):
        lengths = split.lengths.amin(-1) if split.lengths.ndim > 1 else split.lengths
        split = split.subset(torch.where(lengths == lengths.max())[0])
    return split.first(inputs)


def _batch_size(moment: Moment, split: Any) -> int:
    """Return a size with which no more than :data:`ENTRIES` of matrices are in memory at once."""
    image, _ = next(split.first(1).batches(1))
    model = moment.opened.model
    n = max(x.shape[1] for x in model.attention_inputs(image))
    heads = max(getattr(one, "heads", 1) for one in model.mechanisms())
    return max(1, min(BATCH, ENTRIES // (heads * n * n)))


def _decomposes(mechanism: nn.Module) -> bool:
    return hasattr(mechanism, "attention_matrix") or hasattr(mechanism, "singular_values")


def _spectra(mechanism: Any, x: Tensor, generator: torch.Generator, exact_up_to: int) -> Spectra:
    if hasattr(mechanism, "attention_matrix"):
        return spectra_of(mechanism.attention_matrix(x), generator, exact_up_to)
    return spectra_of_values(mechanism.singular_values(x))


def _tell_without(moment: Moment, layers: Sequence[int]) -> None:
    if layers:
        mechanisms = moment.opened.model.mechanisms()
        kinds = ", ".join(sorted({type(mechanisms[layer]).__name__ for layer in layers}))
        which = ", ".join(map(str, layers))
        console.print(
            f"{moment.opened.run.folder}: no attention matrix in layer {which} ({kinds}); nothing to decompose"
        )


def _spectrum_rows(found: Spectra, about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each head and index."""
    quantities = {"singular_value": found.values, "cumulative_explained_variance": explained_variance(found)}
    over_inputs = {name: mean_and_deviation(values) for name, values in quantities.items()}
    error = found.error.amax(0)
    heads, known = found.values.shape[1:]
    for head in range(heads):
        for index in np.unique(np.linspace(0, known - 1, min(known, SHOWN)).round().astype(int)):
            row = {**_place(about), "head": head, "index": index + 1, "of": found.total}
            for name, (mean, deviation) in over_inputs.items():
                row |= {name: mean[head, index].item(), f"{name}_std": deviation[head, index].item()}
            yield {**row, "error": error[head].item(), **about}


def _rank_rows(found: Spectra, about: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a row for each head."""
    counted = ranks(found)
    names = {"numerical_rank": counted.numerical, "effective_rank": counted.effective, "rank_90": counted.ninety}
    over_inputs = {name: mean_and_deviation(values) for name, values in names.items()}
    for head in range(found.values.shape[1]):
        row = {**_place(about), "head": head, "of": found.total}
        for name, (mean, deviation) in over_inputs.items():
            row |= {name: mean[head].item(), f"{name}_std": deviation[head].item()}
        yield {**row, **about}


def _place(about: dict[str, Any]) -> dict[str, Any]:
    """Return the columns that come first."""
    return {"epoch": about["epoch"], "layer": about["layer"]}
