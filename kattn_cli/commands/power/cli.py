"""``kattn power``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import QuietOption, ResultsOption
from kattn_cli.errors import KattnError

EXAMPLE = (
    "Example:  kattn power fashion_mnist/rpc --against fashion_mnist/symmetric --table attacks.csv --where attack=pgd "
    "--where epsilon=4/255 --effect 3"
)


def power(
    references: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="STUDY... | RUNS...", help="Studies; or runs, with --against others.", show_default=False
        ),
    ] = None,
    against: Annotated[list[str] | None, typer.Option(help="The runs they are compared with; repeat.")] = None,
    effect: Annotated[
        float | None,
        typer.Option(min=1e-9, help="The difference to be seen, in the measure's unit. [default: the margin, or 1]"),
    ] = None,
    table: Annotated[str, typer.Option(help="Of runs: the table with the measure.")] = "eval.csv",
    where: Annotated[
        list[str] | None, typer.Option(metavar="COLUMN=VALUE", help="Of runs: which rows; repeat. [default: clean]")
    ] = None,
    value: Annotated[str, typer.Option(help="Of runs: the column.")] = "top1",
    level: Annotated[float, typer.Option(min=0.0001, max=0.2, help="Of the two-sided test.")] = 0.05,
    of: Annotated[float, typer.Option("--power", min=0.5, max=0.999, help="How sure to see it.")] = 0.8,
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """How many seeds and images a comparison needs, and what those that are there can see.

    The scatter over seeds and images is that of the runs that are there, which may be few: a pilot. Nothing is trained.
    """
    from kattn_cli.console import console
    from kattn_cli.studies.study import find_study, load_study

    console.quiet = quiet
    if not references:
        raise KattnError("Nothing was named: a study, or runs with --against others. For example: kattn power quick")
    from kattn_cli.commands.power.tables import Wanted, of_runs, of_study

    wanted = Wanted(effect, level, of)
    if against:
        of_runs(references, against, table, where or [], value, wanted, results)
        return
    if where or table != "eval.csv" or value != "top1":
        raise KattnError("--table, --where and --value: are for runs; name others with --against")
    for study in [load_study(find_study(reference)) for reference in references]:
        of_study(study, wanted, results)
