"""What the columns of tables hold, and which of them a table cannot do without. Never imports torch.

A table may have been edited by hand, or by a disk. Here is the one place that finds out: whoever gets rows or a frame
from :mod:`kattn_cli.runs.csv_rows` may rely on what stands here, and columns that do not are as they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from kattn_cli.errors import RunError, did_you_mean
from kattn_cli.runs.bits import CORRECT, fault_of

MISSING = ("", "nan", "NaN")
"""Cells without a value."""
WHOLE = frozenset(
    {
        *("batch", "batch_size", "components", "context", "dim", "dropped", "epoch", "episode", "expert", "head"),
        *("head_i", "head_j", "heads", "i", "image", "images", "index", "inputs", "iteration", "iterations", "j"),
        *("layer", "length", "n", "of", "pixels", "recipe_iterations", "restarts", "round", "seed", "severity", "size"),
        *("step", "steps", "stride", "swap_seed", "window", "clean", "row", "column"),
    }
)
"""Columns of whole numbers."""
NUMBERS = frozenset(
    {
        *("accuracy", "aupr", "aupr_chance", "auc", "auc_std", "auxiliary_loss", "bits_per_byte", "blue", "bound"),
        *("clean_top1", "coherence", "corruption_error", "cosine", "cumulative_explained_variance"),
        *("cumulative_explained_variance_std", "difference_mean", "difference_median", "difference_std"),
        *(
            "displacement",
            "displacement_std",
            "dropped_share",
            "ece",
            "effective_rank",
            "effective_rank_std",
            "eigenvalue_max",
            "eigenvalue_mean",
        ),
        *("eigenvalue_median", "eigenvalue_min", "epsilon", "error", "feature_norm", "forward_flops"),
        *(
            "forward_flops_per_sample",
            "gradient_l1_mean",
            "gradient_l1_median",
            "green",
            "held_mib",
            "high",
            "images_per_second",
            "iou",
            "j_proj",
            "largest",
        ),
        *(
            "logit_scale",
            "loss",
            "low",
            "lr",
            "margin_mean",
            "margin_median",
            "matrix_product_flops",
            "matrix_product_flops_per_sample",
            "mean_accuracy",
            "mean_iou",
        ),
        *("mean_l1", "mean_l2", "mean_linf", "milliseconds", "milliseconds_high", "milliseconds_low"),
        *("milliseconds_per_sample", "nonzero_share", "normalised_score", "null_auc", "null_high", "null_low"),
        *("null_mean", "numerical_rank", "numerical_rank_std", "objective", "objective_paper", "objective_reference"),
        *("objective_std", "overlap_chance", "overlap_e", "overlap_r", "p_value", "peak_mib"),
        *("perplexity", "pixel_accuracy", "precision", "probability", "projection_norm", "published", "rank_90"),
        *("rank_90_std", "rate", "rate_std", "ratio", "ratio_high", "ratio_low", "recall", "red", "reference_error"),
        *("residual", "residual_e", "residual_r", "residual_std", "return", "seconds", "sequences_per_second"),
        *("share", "singular_value", "singular_value_std", "spread", "state_mib", "step_size", "swap_share"),
        *("target_rate", "target_return", "tokens", "tokens_per_second", "tolerance", "top1", "top1_high"),
        *("top1_low", "top5", "unknown", "value", "value_std", "windows_per_second", "zero_gradient_share"),
    }
)
"""Columns of numbers, which may be missing or infinite. All others hold text, or what nobody counts with."""


class Needed(NamedTuple):
    """Columns of a table: ``filled`` in every row, or ``there`` with cells that may be empty.

    ``words``: columns that hold words here, and numbers elsewhere.
    """

    filled: Sequence[str]
    there: Sequence[str] = ()
    words: Sequence[str] = ()


NOTHING = Needed(())


def _needed(filled: str, there: str = "") -> Needed:
    return Needed(filled.split(), there.split())


_COST = "device dtype batch"
TABLES: Mapping[str, Needed] = {
    "metrics.csv": _needed("epoch step split", "loss"),
    "eval.csv": _needed("split images", "top1"),
    "attacks.csv": _needed("attack epsilon images", "top1 clean_top1"),
    "attack_checks.csv": _needed("check verdict evidence"),
    "attacked": _needed("batch of image clean top1"),
    "perplexity.csv": _needed("swap_share stride asked tokens", "split corpus swap_seed perplexity"),
    "rollouts.csv": _needed("environment target_return episode seed", "return"),
    "segmentation.csv": _needed("split severity images", "checkpoint corruption mean_accuracy mean_iou"),
    "corruption_errors.csv": _needed("corruption", "error reference_error"),
    "experts.csv": _needed("split layer expert", "share"),
    "sensitivity.csv": _needed(
        "split images", "margin_mean margin_median logit_scale gradient_l1_mean gradient_l1_median zero_gradient_share"
    ),
    "spectrum.csv": _needed("layer head index", "inputs cumulative_explained_variance"),
    "effective_rank.csv": _needed("layer head", "effective_rank"),
    "audit/alignment.csv": _needed("epoch layer head measure", "value null_mean null_high"),
    "audit/class_attention.csv": _needed("image layer head row column", "value"),
    "audit/coherence.csv": _needed("epoch layer", "coherence largest null_mean null_low null_high"),
    "audit/compression.csv": _needed("epoch split layer stage", "rate"),
    "audit/duality.csv": _needed("epoch layer head", "objective residual_e overlap_e overlap_chance"),
    "audit/eigenvectors.csv": _needed("epoch layer head values", "difference_mean eigenvalue_max eigenvalue_mean"),
    "audit/foreground.csv": _needed("kind layer head", "auc null_auc"),
    "audit/images.csv": _needed("image row column red green blue"),
    "audit/membership.csv": _needed("image layer head row column", "value"),
    "audit/outliers.csv": _needed("layer size", "displacement"),
    "audit/planted.csv": _needed("method iterations size", "share precision recall"),
    "audit/projection_error.csv": _needed("epoch layer head", "feature_norm projection_norm j_proj"),
    "audit/pursuit.csv": _needed("layer head convention iteration", "residual nonzero_share recipe_iterations"),
    "audit/subspaces.csv": _needed("layer head_i head_j i j", "cosine"),
    "complexity": _needed("attention pass n dim status", f"heads milliseconds peak_mib forward_flops {_COST}"),
    "models": _needed("model attention version pass n status", f"milliseconds_per_sample peak_mib held_mib {_COST}"),
    "decoding": _needed("attention context status", f"milliseconds ratio state_mib peak_mib {_COST}"),
    "benchmark": _needed("item quantity", "ours against value low high bound device dtype"),
    "losses.csv": Needed((), words=("loss",)),
    "kernel-pca": _needed("task n kernel solver round", "seconds accuracy tolerance device"),
}
"""Of each table of a run, by its place in the run's folder, of ``attacked`` of each there; of costs, by their kind.

What every version of kattn wrote, and what commands work with, is here, and no more: a table of an earlier version, or
one from which somebody removed a column that nobody reads, is read as ever.
"""


def needed_of(path: Path) -> Needed:
    """Return the columns that a table of a run needs, by its place in the run's folder."""
    folder = path.parent.name
    name = folder if folder == "attacked" else f"audit/{path.name}" if folder == "audit" else path.name
    return TABLES.get(name, NOTHING)


def check(path: Path, records: Sequence[Sequence[str]], needed: Needed) -> None:
    """Check that a table is what it should be: its header, then every row.

    Args:
        records: the header first.

    Raises:
        RunError: for the first fault: the file, the row (the header being row 1), the column and what was expected.
    """
    if not records:
        return
    header, *rows = records
    if fault := next(_faults(header, rows, needed), ""):
        raise RunError(f"{path}: {fault}; mend or remove that row" if fault.startswith("row ") else f"{path}: {fault}")


def _faults(header: Sequence[str], rows: Sequence[Sequence[str]], needed: Needed) -> Iterator[str]:
    for column in header:
        if header.count(column) > 1:
            yield f'the header has "{column}" twice'
    for column in (*needed.filled, *needed.there):
        if column not in header:
            others = [one for one in header if one not in (*needed.filled, *needed.there)]
            yield f'the header has no "{column}"{did_you_mean(column, others).replace("did you mean", "is it")}'
    for number, row in enumerate(rows, 2):
        if len(row) != len(header):
            yield f"row {number} has {len(row)} fields, and the header {len(header)}"
    for place, column in enumerate(header):
        words = column in needed.words
        kind = "" if words else "a whole number" if column in WHOLE else "a number" if column in NUMBERS else ""
        if not kind and column not in needed.filled:
            continue
        holds = _IS.get(kind, bool) if column in needed.filled else _MAY_BE.get(kind, bool)
        for number, row in enumerate(rows, 2):
            cell = row[place]
            if cell in MISSING:
                if column in needed.filled:
                    yield f"row {number}, column {column}: {kind or 'a word'} was expected, not {cell or 'nothing'}"
            elif not holds(cell):
                yield f'row {number}, column {column}: {kind} was expected, not "{_short(cell)}"'
    yield from _faulty_bits(header, rows)


def _faulty_bits(header: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    if {CORRECT, "images"} <= set(header):
        bits, images = header.index(CORRECT), header.index("images")
        for number, row in enumerate(rows, 2):
            if row[bits] and row[images] not in MISSING and (fault := fault_of(row[bits], int(float(row[images])))):
                yield f"row {number}, column {CORRECT}: {fault}"


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return cell.isascii() and "_" not in cell


def _is_whole(cell: str) -> bool:
    return cell.isascii() and cell.removeprefix("-").isdigit() and len(cell) < 19


def _may_be_whole(cell: str) -> bool:
    return _is_number(cell) and float(cell).is_integer()


_IS = {"a whole number": _is_whole, "a number": _is_number}
_MAY_BE = {**_IS, "a whole number": _may_be_whole}
"""Whole numbers among missing ones are written as 3.0 by pandas."""


def _short(cell: str) -> str:
    line = " ".join(cell.split())
    return line if len(line) <= 40 else f"{line[:40]}…"
