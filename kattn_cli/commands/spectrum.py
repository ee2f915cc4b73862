"""``kattn spectrum``: singular-value decay of the attention matrix, per layer and head."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from kattn_cli.analysis.spectrum import singular_values, spectrum
from kattn_cli.commands.loading import OpenRun, open_run
from kattn_cli.console import console, progress_bar
from kattn_cli.data import Split
from kattn_cli.device import device_name
from kattn_cli.provenance import provenance
from kattn_cli.results import Run, write_rows

SPECTRUM_CSV = "spectrum.csv"
BATCH = 64


def spectra_of_runs(runs: Sequence[Run], *, device: torch.device, inputs: int, checkpoint: str) -> list[Run]:
    """Write ``spectrum.csv`` into each run, over the first ``inputs`` images of the split chosen on.

    Returns the runs that have at least one layer with an attention matrix.
    """
    written = []
    with progress_bar("run") as bar:
        task = bar.add_task("spectrum", total=len(runs), count="", note="")
        for number, run in enumerate(runs, 1):
            record = provenance(device_name(device))
            opened = open_run(run, device, checkpoint)
            if rows := _rows(opened, opened.data.splits["validation"].first(inputs).to(device)):
                write_rows(run.folder / SPECTRUM_CSV, rows)
                run.add_measurement(record)
                written.append(run)
            bar.update(task, completed=number, count=f"{number}/{len(runs)}", note=run.label)
    return written


@torch.no_grad()
def _rows(opened: OpenRun, split: Split) -> list[dict[str, Any]]:
    mechanisms = opened.model.mechanisms()
    layers = [index for index, mechanism in enumerate(mechanisms) if hasattr(mechanism, "attention_matrix")]
    if without := sorted(set(range(len(mechanisms))) - set(layers)):
        kinds = ", ".join(sorted({type(mechanisms[index]).__name__ for index in without}))
        which = ", ".join(map(str, without))
        console.print(f"{opened.run.folder}: no attention matrix in layer {which} ({kinds}); nothing to decompose")
    collected: dict[int, list[torch.Tensor]] = {layer: [] for layer in layers}
    seen = 0
    for images, labels in split.batches(BATCH):
        seen += len(labels)
        inputs = opened.model.attention_inputs(images)
        for layer in layers:
            collected[layer].append(singular_values(mechanisms[layer].attention_matrix(inputs[layer])))  # type: ignore[operator]
    rows = []
    for layer in layers:
        found = spectrum(torch.cat(collected[layer]))
        heads, count = found.values.shape
        for head in range(heads):
            for index in range(count):
                rows.append(
                    {
                        "layer": layer,
                        "head": head,
                        "index": index + 1,
                        "singular_value": found.values[head, index].item(),
                        "singular_value_std": found.values_std[head, index].item(),
                        "cumulative_explained_variance": found.explained[head, index].item(),
                        "cumulative_explained_variance_std": found.explained_std[head, index].item(),
                        "layer_mechanism": type(mechanisms[layer]).__name__,
                        "inputs": seen,
                        "split": opened.data.chosen_on,
                        "checkpoint": opened.checkpoint,
                    }
                )
    return rows
