"""The options that several subcommands share."""

from __future__ import annotations

import logging
import os
import shlex
from collections.abc import Iterable
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kattn_cli.papers import PAPERS
from kattn_cli.papers.paper import Paper

if TYPE_CHECKING:
    import torch

    from kattn_cli.runs.run import Run


class Checkpoint(str, Enum):
    """Which weights of a run."""

    best = "best"
    best_previous = "best.previous"
    last = "last"
    last_previous = "last.previous"


class DType(str, Enum):
    """The precision of a measurement."""

    float32 = "float32"
    bfloat16 = "bfloat16"


class Pass(str, Enum):
    """What of a model or mechanism is measured."""

    forward = "forward"
    forward_backward = "forward+backward"


class Operators(str, Enum):
    """The version of an operator."""

    fast = "fast"
    plain = "plain"
    slow = "slow"


class FigureFormat(str, Enum):
    """What figures are written as."""

    pdf = "pdf"
    png = "png"
    svg = "svg"


class FigureStyle(str, Enum):
    """How figures look."""

    paper = "paper"
    slides = "slides"


Runs = Annotated[
    list[str] | None,
    typer.Argument(
        help="Runs: folders, or names under the results folder. [default: the newest run]", show_default=False
    ),
]
RecipesAndOverrides = Annotated[
    list[str],
    typer.Argument(
        metavar="RECIPE... [KEY=VALUE...]",
        help="Recipes: shipped names, files, variants of a file (my.yaml/rpc) or folders; then overrides of all.",
    ),
]
SeedOption = Annotated[
    list[int] | None, typer.Option(min=0, max=2**32 - 1, help="A seed; repeat for several. [default: the recipe's]")
]
DeviceOption = Annotated[str, typer.Option("--device", help="auto, cpu, cuda or cuda:INDEX.")]
ResultsOption = Annotated[Path, typer.Option("--results", help="Where runs are kept.")]
QuietOption = Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")]
CheckpointOption = Annotated[
    Checkpoint,
    typer.Option(help="The weights to use; best is chosen on validation, previous is what had the name before."),
]

RunAsOption = Annotated[
    str | None,
    typer.Option(
        "--run-as",
        metavar="RECIPE",
        help="Run the weights as this recipe's attention, whose parameters must have the same names and shapes.",
    ),
]
PassOption = Annotated[
    list[Pass] | None, typer.Option("--pass", help="forward or forward+backward; repeat. [default: both]")
]
OperatorsOption = Annotated[
    list[Operators] | None,
    typer.Option(
        help="fast: kernels made for the operator; plain: torch's operations; slow: the equations as they stand. "
        "Repeat. [default: fast]"
    ),
]
SecondsOption = Annotated[float, typer.Option(min=0.01, help="Repeat each measurement for at least so long.")]
MemoryOption = Annotated[
    float | None, typer.Option(min=0.001, help="GiB a measurement may take on a CPU. [default: what is free]")
]
ResumeTableOption = Annotated[
    bool, typer.Option("--resume", help="Go on with the newest unfinished table of this very command.")
]


def paper_named(name: str) -> Paper:
    """Return the paper of that name."""
    if name not in PAPERS:
        raise typer.BadParameter(f"{name!r} is not one of {', '.join(map(repr, PAPERS))}.")
    return PAPERS[name]


def paper_option(help_text: str) -> Any:
    """Return an option that takes a paper by its name."""
    return typer.Option("--paper", parser=paper_named, metavar=f"[{'|'.join(PAPERS)}]", help=help_text)


def references_and_overrides(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the arguments without ``=``, and those with it."""
    return [one for one in arguments if "=" not in one], [one for one in arguments if "=" in one]


def next_arguments(names: Iterable[str], results: Path) -> str:
    """Return runs by their names, and the folder they lie in where it is not the usual one, as a shell reads them."""
    elsewhere = [] if results == Path("results") else ["--results", str(results)]
    return shlex.join([*names, *elsewhere])


def fraction(text: str) -> float:
    """Return the number that ``4/255`` or ``0.0157`` means."""
    try:
        value = float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f'"{text}" is not a number or a fraction such as 4/255') from None
    if not 0 < value <= 1:
        raise typer.BadParameter(f"{text} is not in (0, 1]; pixels run from 0 to 1")
    return value


def start(quiet: bool, device: str) -> torch.device:
    """Return the device to run on; silence the console if asked to."""
    from kattn_cli.console import console
    from kattn_cli.device import resolve_device

    console.quiet = quiet
    return resolve_device(device)


def silence_profiler() -> None:
    """Keep torch's profiler and its build tools from chattering; call this before torch is imported."""
    for variable, level in (("KINETO_LOG_LEVEL", "99"), ("TORCH_CPP_LOG_LEVEL", "ERROR")):
        os.environ.setdefault(variable, level)
    logging.getLogger("torch.utils.cpp_extension").setLevel(logging.ERROR)


def chosen_runs(results: Path, references: list[str] | None, quiet: bool) -> list[Run]:
    """Return the runs that ``references`` mean, by default the newest, whose folder is then printed."""
    from kattn_cli.console import console
    from kattn_cli.runs.find import find_runs

    console.quiet = quiet
    chosen = find_runs(results, references or [])
    if not references:
        console.print(f"The newest run: {chosen[0].folder}")
    return chosen
