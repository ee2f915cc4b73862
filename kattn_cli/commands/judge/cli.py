"""``kattn judge``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import DeviceOption, QuietOption, ResultsOption, silence_profiler, start
from kattn_cli.runs.provenance import as_typed

EXAMPLE = "Example:  kattn judge linear --quick --jobs 2"
SEEDS, FEW = 5, 3


def judge(
    mechanism: Annotated[
        str, typer.Argument(help="my_attention.py:MyAttention, or a mechanism's name.", show_default=False)
    ],
    options: Annotated[
        list[str] | None, typer.Argument(metavar="[KEY=VALUE...]", help="Its options.", show_default=False)
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="How many; fewer than 3 decide nothing. [default: 5]", show_default=False)
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="Three seeds, and cost at fewer N; what it trains counts for all.")
    ] = False,
    probes: Annotated[bool, typer.Option("--probes", help="Only what needs no training: seconds.")] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Train or measure so many at once.")] = 2,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Judge an attention mechanism: is it what it says, and is it worth more than softmax attention?

    First probes of honesty, untrained: whether a causal form sees the future, gradients are masked, or it is a known
    mechanism under another name. Then it is trained beside softmax, symmetric attention, Primal-Attention and
    TSSA on digits (clean, attacked, corrupted, with planted outliers, its spectrum) and on associative recall, with
    margins written down beforehand. Then time and memory over N. One line of verdict for each; one page.

    The baselines are trained once, for all judgements. Stopped, the same command goes on.
    """
    silence_profiler()
    where = start(quiet, device)
    from kattn_cli.commands.judge.candidate import Candidate
    from kattn_cli.commands.judge.judge import Wanted
    from kattn_cli.commands.judge.judge import judge as run
    from kattn_cli.commands.study.run import Asked
    from kattn_cli.executors import EXECUTORS, Request
    from kattn_cli.executors.local import threads_each

    threads = threads_each(jobs)
    request = Request(jobs, threads, 0, (results / ".study" / "local").resolve(), {}, None)
    command = as_typed()
    asked = Asked(results, EXECUTORS["local"](request), threads, jobs, device, command)
    wanted = Wanted(seeds or (FEW if quick else SEEDS), quick, probes, where)
    run(Candidate.of(mechanism, tuple(options or [])), wanted, asked)
