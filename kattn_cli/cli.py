"""The command line: which commands there are, and the only place where errors become exit codes."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup
from typer.main import get_command

import kattn_cli
from kattn_cli.attention.user_file import faults_of_user_files
from kattn_cli.errors import KattnError, Stopped, is_out_of_memory

COMMANDS = {
    "train": "train.cli:train",
    "sweep": "sweep.cli:sweep",
    "eval": "eval.cli:evaluate",
    "generate": "generate.cli:generate",
    "attack": "attack.cli:attack",
    "audit": "audit.cli:audit",
    "complexity": "complexity.cli:complexity",
    "model-costs": "model_costs.cli:model_costs",
    "decoding": "decoding.cli:decoding",
    "benchmark": "benchmark.cli:benchmark",
    "throughput": "throughput.cli:throughput",
    "kernel-pca": "kernel_pca.cli:kernel_pca",
    "spectrum": "spectrum.cli:spectrum",
    "plot": "plot.cli:plot",
    "report": "report.cli:report",
    "reproduce": "reproduce.cli:reproduce",
    "study": "study.cli:study",
    "judge": "judge.cli:judge",
    "power": "power.cli:power",
    "list": "list.cli:list_",
    "data": "data.cli:data_app",
}
"""Where each command stands under ``kattn_cli.commands``: a function with its ``EXAMPLE`` beside it, or a Typer app."""
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""The system's faults where no more can be written."""
FORMER = {("complexity", "--model"): "model-costs", ("complexity", "--decode"): "decoding"}
"""Commands that were options of others, and go on working as such."""


class _Imported(Mapping[str, Any]):
    """:data:`COMMANDS` as click's commands, each imported when it is asked for."""

    def __getitem__(self, name: str) -> Any:
        place, _, attribute = COMMANDS[name].partition(":")
        module = import_module(f"kattn_cli.commands.{place}")
        command = getattr(module, attribute)
        if not isinstance(command, typer.Typer):
            alone = typer.Typer(add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False)
            alone.command(name, epilog=module.EXAMPLE)(command)
            command = alone
        return get_command(command)

    def __iter__(self) -> Iterator[str]:
        return iter(COMMANDS)

    def __len__(self) -> int:
        return len(COMMANDS)


class _Group(TyperGroup):
    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Imported()

    def resolve_command(self, context: Any, words: list[str]) -> tuple[Any, Any, list[str]]:
        for (command, option), successor in FORMER.items():
            if words[0] == command and option in words:
                words = [successor, *(word for word in words[1:] if word != option)]
        return super().resolve_command(context, words)


app = typer.Typer(
    cls=_Group,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Kernel views of attention: trained, evaluated, attacked and measured under one protocol.\n\n"
    "Begin with:  kattn train quickstart/rpc",
)


def _version(asked: bool) -> None:
    if asked:
        typer.echo(f"kattn {kattn_cli.__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the subcommand."""


def main() -> None:
    """Run the app: 2 for a fault of the input, 130 for Ctrl-C; a bug keeps its traceback."""
    try:
        with faults_of_user_files():
            app()
    except KattnError as error:
        typer.echo(str(error), err=True)
        sys.exit(2)
    except Stopped as stop:
        typer.echo(str(stop), err=True)
        sys.exit(stop.code)
    except Exception as error:
        if isinstance(error, OSError) and error.errno in FULL and error.filename is None:
            _end_without_output(error)
        if not is_out_of_memory(error):
            raise
        what = " ".join(str(error).split()) or type(error).__name__
        typer.echo(f"There is not enough memory here, or a limit on it is too low (ulimit -v): {what}", err=True)
        sys.exit(2)


def _end_without_output(fault: OSError) -> NoReturn:
    """End where the disk that takes what is printed is full; a file of kattn's own says its path."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # what is still to be printed, Python prints at the end
    with suppress(OSError):
        typer.echo(f"What is printed cannot be written: {fault.strerror}", err=True)
    sys.exit(2)


if __name__ == "__main__":
    main()
