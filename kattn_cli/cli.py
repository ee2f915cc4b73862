"""The command line: one thin function a subcommand, and the only place that turns errors into exit codes."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

import kattn_cli
from kattn_cli.commands.attack import cli as cli_attack
from kattn_cli.commands.audit import cli as cli_audit
from kattn_cli.commands.benchmark import cli as cli_benchmark
from kattn_cli.commands.complexity import cli as cli_complexity
from kattn_cli.commands.data.cli import data_app
from kattn_cli.commands.eval import cli as cli_eval
from kattn_cli.commands.generate import cli as cli_generate
from kattn_cli.commands.kernel_pca import cli as cli_kernel_pca
from kattn_cli.commands.options import (
    DeviceOption,
    Kind,
    QuietOption,
    RecipesAndOverrides,
    ResultsOption,
    SeedOption,
    references_and_overrides,
    silence_profiler,
    start,
)
from kattn_cli.commands.plot import cli as cli_plot
from kattn_cli.commands.report import cli as cli_report
from kattn_cli.commands.reproduce import cli as cli_reproduce
from kattn_cli.commands.spectrum import cli as cli_spectrum
from kattn_cli.commands.sweep import cli as cli_sweep
from kattn_cli.errors import KattnError, Stopped, stoppable

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="Kernel views of attention: trained, evaluated, attacked and measured under one protocol.\n\n"
    "Begin with:  kattn train quickstart/rpc",
)
app.add_typer(data_app, name="data", help="Data sets: which there are, whether one is all there, and getting it.")


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


@app.command(epilog="Example:  kattn train quickstart/rpc train.epochs=5 attention.iterations=6 --seed 0 --seed 1")
def train(
    arguments: RecipesAndOverrides,
    seed: SeedOption = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the newest unfinished run of the recipe, if there is one.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="With --resume: even if the recipe has changed.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print data, model, steps and memory; train nothing.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Train so many at once, sharing the cores.")] = 1,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Train one or several recipes."""
    references, overrides = references_and_overrides(arguments)
    if not references:
        raise KattnError("No recipe was named. For example: kattn train quickstart/rpc train.epochs=5")
    silence_profiler()
    if force and not resume:
        raise KattnError("--force: says to go on even if the recipe has changed, so it goes with --resume")
    where = start(quiet, device)
    if dry:
        from kattn_cli.commands.train.dry_run import dry_run

        if os.environ.get("RANK", "0") == "0":
            processes = int(os.environ.get("WORLD_SIZE", "1"))
            dry_run(references, overrides, seed or [], results=results, processes=processes)
        return
    from kattn_cli.commands.train.train import train as run_training
    from kattn_cli.console import console

    runs = run_training(
        references, overrides, seed or [], results=results, device=where, resume=resume, force=force, jobs=jobs
    )
    if console.quiet:
        return
    for run in runs:
        console.print(f"{run.folder}: best {run.best}")
    elsewhere = "" if results == Path("results") else f" --results {results}"
    names = _told(sorted({run.name for run in runs}))
    images = all(run.reads == "images" for run in runs)
    console.print(f"Next: kattn {f'attack {names} --pgd --epsilon 4/255' if images else f'eval {names}'}{elsewhere}")


app.command("sweep", epilog=cli_sweep.EXAMPLE)(cli_sweep.sweep)
app.command("eval", epilog=cli_eval.EXAMPLE)(cli_eval.evaluate)
app.command("attack", epilog=cli_attack.EXAMPLE)(cli_attack.attack)
app.command("audit", epilog=cli_audit.EXAMPLE)(cli_audit.audit)
app.command("benchmark", epilog=cli_benchmark.EXAMPLE)(cli_benchmark.benchmark)
app.command("complexity", epilog=cli_complexity.EXAMPLE)(cli_complexity.complexity)
app.command("generate", epilog=cli_generate.EXAMPLE)(cli_generate.generate)
app.command("kernel-pca", epilog=cli_kernel_pca.EXAMPLE)(cli_kernel_pca.kernel_pca)
app.command("spectrum", epilog=cli_spectrum.EXAMPLE)(cli_spectrum.spectrum)
app.command("plot", epilog=cli_plot.EXAMPLE)(cli_plot.plot)
app.command("report", epilog=cli_report.EXAMPLE)(cli_report.report)
app.command("reproduce", epilog=cli_reproduce.EXAMPLE)(cli_reproduce.reproduce)


@app.command(epilog="Example:  kattn throughput quickstart/softmax train.batch_size=256")
def throughput(
    recipe: Annotated[str, typer.Argument(help="The recipe whose training to measure.")],
    overrides: Annotated[list[str] | None, typer.Argument(metavar="[KEY=VALUE...]")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, in each of which all take their turn.")] = 7,
    steps: Annotated[int, typer.Option(min=1, help="Steps of the optimizer a turn.")] = 20,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Training speed: our loop against timm's model in a plain one, and the recipe's data against synthetic input."""
    where = start(quiet, device)
    from kattn_cli.commands.throughput.throughput import PAIRS, measure_throughput
    from kattn_cli.console import console

    with stoppable("nothing was written"):
        done = measure_throughput(recipe, overrides or [], results=results, device=where, rounds=rounds, steps=steps)
    for name in done.speeds.rounds:
        console.print(f"{name:24} {done.speeds.median(name):10,.1f} img/s")
    for one, other in PAIRS:
        if other in done.speeds.rounds:
            middle, least, most = done.speeds.ratio(one, other)
            console.print(f"{one} / {other}: {middle:.3f} ({least:.3f} to {most:.3f})")
    console.print(done.path)


@app.command("list", epilog="Example:  kattn list attention")
def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")] = Kind.recipes,
    markdown: Annotated[bool, typer.Option("--markdown", help="The mechanisms as the README's table.")] = False,
    results: ResultsOption = Path("results"),
) -> None:
    """What there is: mechanisms, data sets, models, attacks, recipes, runs."""
    from kattn_cli.console import console

    console.quiet = False
    if markdown:
        if kind is not Kind.attention:
            raise KattnError(f"--markdown: only attention has such a table, not {kind.value}")
        from kattn_cli.commands.list.attention_table import attention_table

        console.print(attention_table(), markup=False)
        return
    from kattn_cli.commands.list.listing import listing

    console.print(listing(kind.value, results))


def _told(names: list[str]) -> str:
    """Runs as arguments: many of them by their folders."""
    return " ".join(names if len(names) <= 3 else sorted({name.partition("/")[0] for name in names}))


def main() -> None:
    """Run the app: 2 for a fault of the input, 130 for Ctrl-C; a bug keeps its traceback."""
    try:
        app()
    except KattnError as error:
        typer.echo(str(error), err=True)
        sys.exit(2)
    except Stopped as stop:
        typer.echo(str(stop), err=True)
        sys.exit(stop.code)


if __name__ == "__main__":
    main()
