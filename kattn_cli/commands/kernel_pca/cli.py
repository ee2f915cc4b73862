"""``kattn kernel-pca``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import QuietOption, ResultsOption
from kattn_cli.errors import KattnError, stoppable

EXAMPLE = "Example:  kattn kernel-pca --data digits --kernel rbf --components 20 --tolerance 1e-2"


class DataSet(str, Enum):
    """What kernel PCA is done on."""

    digits = "digits"
    synthetic = "synthetic"


class Kernel(str, Enum):
    """Its kernel."""

    rbf = "rbf"
    polynomial = "polynomial"


def kernel_pca(
    data: Annotated[
        list[DataSet] | None, typer.Option(help="digits or synthetic (normal); repeat. [default: both]")
    ] = None,
    kernel: Annotated[list[Kernel] | None, typer.Option(help="rbf or polynomial; repeat. [default: both]")] = None,
    n: Annotated[int, typer.Option(min=2, help="Points of the synthetic set.")] = 2000,
    components: Annotated[int, typer.Option(min=1, help="Components s.")] = 20,
    tolerance: Annotated[
        float, typer.Option(help="The share of the best components' variance that may be missed, in (0, 1).")
    ] = 1e-2,
    rounds: Annotated[int, typer.Option(min=1, help="Rounds, in each of which all solvers take their turn.")] = 5,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the synthetic set and of all that solvers draw.")] = 0,
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Time of kernel PCA to a stated accuracy: the dual by L-BFGS against full, Lanczos and randomised SVD.

    Each iterative solver is first given the cheapest settings that reach the accuracy; what it then reached is beside
    its time. Ratios are to the dual's time in the same round, above 1 where the dual is faster.
    """
    if not 0 < tolerance < 1:
        raise KattnError(f"--tolerance {tolerance}: expected a share above 0 and below 1, such as 1e-2")
    import pandas as pd

    from kattn_cli.commands.kernel_pca.solvers import Settings, measure_kernel_pca
    from kattn_cli.console import console
    from kattn_cli.figures.kernel_pca import draw_kernel_pca
    from kattn_cli.tables.costs import solver_ratios

    console.quiet = quiet
    settings = Settings(components, tolerance, rounds, n, seed)
    chosen = [one.value for one in data or DataSet], [one.value for one in kernel or Kernel]
    with stoppable(f"the rounds that were finished are under {results / 'kernel_pca'}/"):
        paths = measure_kernel_pca(*chosen, settings, results=results)  # type: ignore[arg-type]
    for path in paths:
        times = pd.read_csv(path)
        table = solver_ratios(times)
        table.to_csv(path.with_name(f"{path.stem}.ratios.csv"), index=False)
        console.print(table.to_string(index=False, float_format="{:.3g}".format))
        console.print(path)
        console.print(draw_kernel_pca(times, path.parent, path.stem))
