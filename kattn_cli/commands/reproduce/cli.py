"""``kattn reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import (
    DeviceOption,
    QuietOption,
    ResultsOption,
    SeedOption,
    references_and_overrides,
    silence_profiler,
)
from kattn_cli.errors import KattnError

EXAMPLE = "Example:  kattn reproduce primal/table3 --small --jobs 2"


def reproduce(
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TABLE... [KEY=VALUE...]",
            help="Tables, such as rpc/table2, or papers, for all of theirs; then overrides of their recipes.",
            show_default=False,
        ),
    ] = None,
    small: Annotated[bool, typer.Option("--small", help="At a size for two cores.")] = False,
    list_: Annotated[bool, typer.Option("--list", help="What there is, and what each needs: data, hours.")] = False,
    dry: Annotated[bool, typer.Option("--dry-run", help="Print the commands behind the tables; run nothing.")] = False,
    seed: SeedOption = None,
    jobs: Annotated[int, typer.Option(min=1, help="Train so many at once, sharing the cores.")] = 1,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results/reproduce"),
    quiet: QuietOption = False,
) -> None:
    """Make one of the papers' tables again: train, measure, and lay the paper's numbers beside ours.

    Every step is a command of kattn, which is printed. Started again, it goes on where it was.
    """
    from kattn_cli.console import console

    if list_:
        from kattn_cli.papers.plan import needs

        console.print(needs(arguments or []))
        return
    if not arguments:
        raise KattnError("No table was named. For example: kattn reproduce primal/table3 --small; --list shows them")
    silence_profiler()
    console.quiet = quiet
    from kattn_cli.commands.reproduce.reproduce import Reproduction, commands
    from kattn_cli.commands.reproduce.reproduce import reproduce as make
    from kattn_cli.papers.plan import SizeName, find_plans

    names, overrides = references_and_overrides(arguments)
    chosen = find_plans(names)
    size: SizeName = "small" if small else "full"
    settings = Reproduction(results, size, tuple(seed or []), tuple(overrides), jobs, device, quiet)
    if not dry:
        make(chosen, settings)
        return
    import shlex

    for name, plan in chosen.items():
        console.print(f"# {name}: {plan.title}")
        for command in commands(plan.size(settings.size, name), settings):
            console.print(shlex.join(["kattn", *command]))
