"""``kattn kernel-pca``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer

from kattn_cli.commands.options import QuietOption, ResultsOption
from kattn_cli.errors import KattnError, stoppable

EXAMPLE = "Example:  kattn kernel-pca solvers losses --data digits --kernel rbf --components 20 --tolerance 1e-2"


class DataSet(str, Enum):
    """What kernel PCA is done on."""

    digits = "digits"
    synthetic = "synthetic"


class Kernel(str, Enum):
    """The kernel."""

    rbf = "rbf"
    polynomial = "polynomial"


class Table(str, Enum):
    """What is measured."""

    solvers = "solvers"
    losses = "losses"
    asymmetric = "asymmetric"


def kernel_pca(
    tables: Annotated[
        list[Table] | None,
        typer.Argument(
            metavar="[TABLE...]",
            help="solvers: time to an accuracy; losses: robust and sparse ones beside outliers; asymmetric: kernel "
            "SVD, exact and from landmarks. [default: solvers]",
            show_default=False,
        ),
    ] = None,
    data: Annotated[
        list[DataSet] | None, typer.Option(help="digits or synthetic (normal); repeat. [default: both]")
    ] = None,
    kernel: Annotated[list[Kernel] | None, typer.Option(help="rbf or polynomial; repeat. [default: both]")] = None,
    n: Annotated[int, typer.Option(min=2, help="Points of the synthetic set.")] = 2000,
    components: Annotated[int, typer.Option(min=1, help="Components s.")] = 20,
    tolerance: Annotated[
        float,
        typer.Option(help="Of solvers: the share of the best variance that may be missed, in (0, 1)."),
    ] = 1e-2,
    rounds: Annotated[
        int,
        typer.Option(min=1, help="Rounds, in each of which all solvers take their turn; repeats of asymmetric."),
    ] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the synthetic set and of all that is drawn.")] = 0,
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Kernel PCA: time to a stated accuracy, robust losses, asymmetric kernels.

    solvers: the dual by L-BFGS against full, Lanczos and randomised SVD. Each iterative solver is first given the
    cheapest settings that reach the accuracy; what it then reached is beside its time. Ratios are to the dual's time in
    the same round, above 1 where the dual is faster.

    losses: 3 % of the points are moved onto a line far out; which share of the other points' variance the components
    of each loss miss, and of which share of the points they are made.

    asymmetric: time and error of a kernel SVD, and of the Nyström method from 5 to 40 % of rows and columns.
    """
    if not 0 < tolerance < 1:
        raise KattnError(f"--tolerance {tolerance}: expected a share above 0 and below 1, such as 1e-2")
    from kattn_cli.commands.kernel_pca.solvers import FOLDER, PcaSettings
    from kattn_cli.console import console

    console.quiet = quiet
    settings = PcaSettings(components, tolerance, rounds, n, seed)
    sets: list[Any] = [one.value for one in data or DataSet]
    kernels: list[Any] = [one.value for one in kernel or Kernel]
    with stoppable(f"the rounds that were finished are under {results / FOLDER}/"):
        for table in tables or [Table.solvers]:
            if table is Table.solvers:
                _solvers(sets, kernels, settings, results)
            else:
                from kattn_cli.commands.kernel_pca.variants import measure_asymmetric, measure_losses

                measure = measure_losses if table is Table.losses else measure_asymmetric
                _print(measure(sets, kernels, settings, results))


def _solvers(data: list[Any], kernels: list[Any], settings: Any, results: Path) -> None:
    from kattn_cli.commands.kernel_pca.solvers import measure_kernel_pca
    from kattn_cli.console import console
    from kattn_cli.figures.kernel_pca import draw_kernel_pca
    from kattn_cli.runs.csv_rows import read_frame
    from kattn_cli.tables.costs import solver_ratios
    from kattn_cli.tables.text import write_frame

    for path in measure_kernel_pca(data, kernels, settings, results=results):
        times = read_frame(path, "kernel-pca")
        ratios = path.with_name(f"{path.stem}.ratios.csv")
        write_frame(ratios, solver_ratios(times))
        _print(path, ratios)
        console.print(draw_kernel_pca(times, path.parent, path.stem))


def _print(path: Path, shown: Path | None = None) -> None:
    """Print a table, or another one in its place, and where it lies."""
    from kattn_cli.console import console
    from kattn_cli.runs.csv_rows import read_frame

    console.print(read_frame(shown or path).to_string(index=False, na_rep="", float_format="{:.3g}".format))
    console.print(path)
