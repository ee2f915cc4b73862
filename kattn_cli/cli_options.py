"""The options that several subcommands share."""

from __future__ import annotations

from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import Annotated

import typer


class Kind(str, Enum):
    """What ``kattn list`` can list."""

    attention = "attention"
    data = "data"
    models = "models"
    attacks = "attacks"
    recipes = "recipes"
    runs = "runs"


class Checkpoint(str, Enum):
    """Which weights of a run."""

    best = "best"
    last = "last"


class DType(str, Enum):
    """The precision of a measurement."""

    float32 = "float32"
    bfloat16 = "bfloat16"


Runs = Annotated[
    list[str] | None,
    typer.Argument(
        help="Runs: folders, or names under the results folder. [default: the newest run]", show_default=False
    ),
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:INDEX.")]
ResultsOption = Annotated[Path, typer.Option("--results", help="Where runs are kept.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
CheckpointOption = Annotated[Checkpoint, typer.Option(help="The weights to use; best is chosen on validation.")]


def fraction(text: str) -> float:
    """``4/255`` or ``0.0157``."""
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f'"{text}" is not a number or a fraction such as 4/255') from None
    if not 0 < value <= 1:
        raise typer.BadParameter(f"{text} is not in (0, 1]; pixels run from 0 to 1")
    return value
