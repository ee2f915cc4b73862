"""``kattn data``: the subcommands on data sets."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import QuietOption

data_app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Data sets: which there are, whether one is all there, and getting it.",
    epilog="Example:  kattn data check mnist",
)

Name = Annotated[str, typer.Argument(help="A data set; kattn data list names them.", show_default=False)]
Options = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Options, as in a recipe's data section.", show_default=False),
]


@data_app.command("list", epilog="Example:  kattn data list")
def list_() -> None:
    """The data sets there are, and where each is or is looked for."""
    from kattn_cli.commands.list.listing import listing
    from kattn_cli.console import console

    console.print(listing("data", Path()))


@data_app.command(epilog="Example:  kattn data check fashion_mnist root=/usr/share/datasets/fashion-mnist")
def check(name: Name, options: Options = None) -> None:
    """Whether each file of a data set is there and undamaged, and how many images there are."""
    from kattn_cli.commands.data.command import check_data

    check_data(name, options or [])


@data_app.command(epilog="Example:  kattn data fetch mnist root=data/mnist")
def fetch(name: Name, options: Options = None) -> None:
    """Download what is missing of a data set into its root, then check it."""
    from kattn_cli.commands.data.command import fetch_data

    fetch_data(name, options or [])


@data_app.command(epilog="Example:  kattn data cache tokens --clear")
def cache(
    names: Annotated[list[str] | None, typer.Argument(help="Which caches. [default: all]", show_default=False)] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove what no running process uses.")] = False,
) -> None:
    """What was made of data and kept to save time: how much, how large, where; all of it can be made again."""
    from kattn_cli.commands.data.cache import show_caches

    show_caches(names or [], clear=clear)


class Algorithm(str, Enum):
    """How the behaviour policy is trained."""

    sac = "sac"
    td3 = "td3"
    ppo = "ppo"
    scripted = "scripted"


@data_app.command(epilog="Example:  kattn data collect hopper --algorithm ppo --steps 400000 --output data/control")
def collect(
    environment: Annotated[
        str,
        typer.Argument(help="hopper, halfcheetah, walker2d, corridor, or an id of gymnasium's.", show_default=False),
    ],
    hyperparameters: Annotated[
        list[str] | None,
        typer.Argument(metavar="KEY=VALUE", help="Of the algorithm, as stable-baselines3 names them."),
    ] = None,
    output: Annotated[Path, typer.Option(help="The folder of the files.")] = Path("data/control"),
    algorithm: Annotated[
        Algorithm | None,
        typer.Option(help="How the policy is trained; scripted: not at all. [default: sac; scripted of the corridor]"),
    ] = None,
    steps: Annotated[int, typer.Option(min=1, help="Steps of training.")] = 300_000,
    transitions: Annotated[
        int | None,
        typer.Option(min=1, help="Steps to record of each policy, at least. [default: 200000; 4000 of a script]"),
    ] = None,
    evaluate_every: Annotated[int, typer.Option(min=1, help="Steps between evaluations, which are kept.")] = 10_000,
    episodes: Annotated[int, typer.Option(min=1, help="Episodes of an evaluation.")] = 10,
    medium: Annotated[
        float, typer.Option(min=0.0, max=1.0, help="How far the medium policy is from a random one to the best.")
    ] = 0.333,
    seed: Annotated[int, typer.Option(min=0, help="Seed of all that is random.")] = 0,
    threads: Annotated[int, typer.Option(min=1, help="Threads of torch.")] = 1,
    quiet: QuietOption = False,
) -> None:
    """Train a policy and record D4RL's levels of it: random, medium, expert, medium_replay and medium_expert.

    The same command goes on with what was stopped or killed, from its last evaluation. Two runs with one seed record
    the same.
    """
    from kattn_cli.environments.names import CORRIDOR, environment_id

    usual = Algorithm.scripted if environment_id(environment) == CORRIDOR else Algorithm.sac
    if (algorithm or usual) is Algorithm.scripted:
        from kattn_cli.commands.data.collect.scripted import collect_scripted

        typer.echo(collect_scripted(environment, output, transitions or 4_000, seed))
        return
    from kattn_cli.commands.data.collect.command import collect as run_collection
    from kattn_cli.commands.data.collect.settings import CollectionSettings, hyperparameters_of
    from kattn_cli.console import console

    console.quiet = quiet
    settings = CollectionSettings(
        environment=environment,
        algorithm=(algorithm or usual).value,
        steps=steps,
        transitions=transitions or 200_000,
        evaluate_every=evaluate_every,
        episodes=episodes,
        medium=medium,
        seed=seed,
        hyperparameters=hyperparameters_of(hyperparameters or []),
    )
    for path in run_collection(settings, output=output, threads=threads):
        console.print(path)
