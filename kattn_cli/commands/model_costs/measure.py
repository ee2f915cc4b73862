"""Measure time, memory and operations of whole models, as the papers' tables have them."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import torch

from kattn_cli.commands.model_costs.models import DecoderStep, Inference, Measured, TrainingStep, measured_models
from kattn_cli.commands.model_costs.report import print_models
from kattn_cli.console import progress_bar
from kattn_cli.costs.flops import ModelFlops, model_flops_of
from kattn_cli.costs.memory import MIB
from kattn_cli.costs.timing import Cost, OutOfMemory, measure
from kattn_cli.device import device_name
from kattn_cli.kernels.choice import Version, operators
from kattn_cli.runs.cost_table import CostTable
from kattn_cli.runs.csv_rows import read_frame
from kattn_cli.runs.provenance import provenance
from kattn_cli.training.seed import Stream, seed_torch

FOLDER = "complexity"
KEYS = ("model", "pass", "n", "batch", "version")
FORWARD, TRAINING = "forward", "training step"


def measure_models(
    references: Sequence[str],
    *,
    overrides: Sequence[str] = (),
    passes: Sequence[str],
    lengths: Sequence[int],
    batches: Sequence[int],
    precision: str,
    operators: Sequence[Version],
    results: Path,
    device: torch.device,
    seconds: float,
    limit: int | None,
    resume: bool,
) -> Path:
    """Measure whole models, print them beside the papers' numbers and return the path of ``models-<device>.csv``.

    A row is one model, pass, batch and version of the operators. A model that does not fit in memory, or fails, gets a
    row that says so, and the others are measured all the same. ``peak_mib`` is what a call takes above ``held_mib``:
    the weights, and for a training step the optimizer's state. No data are read: inputs are random, of the data set's
    shape.

    Args:
        references: recipes, folders of them, or decoders of GPT-2's base size such as ``decoder/tssa``.
        overrides: of the recipes.
        passes: ``forward`` (inference), ``training step`` (also called ``forward+backward``: with the optimizer).
        lengths: texts of the decoders, 4,096 and 8,192 by default; models of recipes have their own number of tokens.
        precision: of matrix products, under autocast as in a training (``train.precision``); weights stay float32.
        operators: ``fast``, ``plain``, ``slow``.
        seconds: how long a call is repeated.
        limit: bytes that a call may take on a CPU; by default what is free.
        resume: whether to go on with an unfinished table of the same settings.

    Raises:
        RecipeError: if there is none, or a recipe or decoder is not one.
    """
    models = measured_models(references, lengths, overrides)
    chosen = list(dict.fromkeys(FORWARD if one == FORWARD else TRAINING for one in passes))
    settings = {
        "models": [[model.name, model.tokens] for model in models],
        **({"overrides": list(overrides)} if overrides else {}),
        "passes": chosen,
        "batches": list(batches),
        "dtype": precision,
        "operators": list(operators),
        "seconds": seconds,
        "limit": limit,
        "threads": torch.get_num_threads(),
    }
    record = provenance(device_name(device))
    table = CostTable.open(results / FOLDER, f"models-{device.type}", settings, record, KEYS, resume)
    cells = list(product(chosen, models, batches, operators))
    with table, progress_bar("model") as bar:
        task = bar.add_task("models", total=len(cells), count="", note="")
        for number, (what, model, batch, version) in enumerate(cells, 1):
            note = f"{model.name} {what}, {model.tokens:,} tokens, batch {batch}, {version}"
            bar.update(task, count=f"{number}/{len(cells)}", note=note)
            if not table.has(**dict(zip(KEYS, (model.name, what, model.tokens, batch, version), strict=True))):
                table.append(_row(model, what, batch, version, precision, device, seconds, limit))
            bar.update(task, completed=number)
    print_models(read_frame(table.path, "models"), table.path)
    return table.path


def _row(
    model: Measured,
    what: str,
    batch: int,
    version: Version,
    precision: str,
    device: torch.device,
    seconds: float,
    limit: int | None,
) -> dict[str, Any]:
    cost: Cost | None = None
    flops: ModelFlops | None = None
    held, parameters, status = 0, 0, "ok"
    seed_torch(0, Stream.COMPLEXITY, model.tokens)
    try:
        flops = model_flops_of(model.build, lambda: model.sample(1))
        built = model.build().to(device)
        parameters = sum(parameter.numel() for parameter in built.parameters())
        call: Inference | TrainingStep | DecoderStep
        call = Inference(built, precision) if what == FORWARD else model.training_step(built, batch, precision)
        with operators(version):
            cost = measure(call, model.sample(batch, device), "forward", seconds, limit, device=device)
        held = call.held()
    except (OutOfMemory, MemoryError, torch.OutOfMemoryError):
        status = "out of memory"
    except Exception as error:
        first = str(error).partition("\n")[0]
        status = f"failed: {type(error).__name__}: {first}"
    return {
        "model": model.name,
        "attention": model.attention,
        "version": version,
        "pass": what,
        "device": device.type,
        "dtype": precision,
        "n": model.tokens,
        "batch": batch,
        "milliseconds": round(cost.milliseconds, 4) if cost else "",
        "spread": round(cost.spread, 4) if cost else "",
        "repeats": cost.repeats if cost else "",
        "milliseconds_per_sample": round(cost.milliseconds / batch, 4) if cost else "",
        "peak_mib": round(cost.peak_mib, 3) if cost else "",
        "held_mib": round(held / MIB, 3) if cost else "",
        "forward_flops_per_sample": flops.flops if flops else "",
        "matrix_product_flops_per_sample": flops.matrix_products if flops else "",
        "parameters": parameters or "",
        "status": status,
    }
