"""``kattn data``: the subcommands on data sets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

data_app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, epilog="Example:  kattn data check mnist")

Name = Annotated[str, typer.Argument(help="A data set; kattn data list names them.", show_default=False)]
Options = Annotated[
    list[str] | None,
    typer.Argument(metavar="KEY=VALUE", help="Options, as in a recipe's data section.", show_default=False),
]


@data_app.command("list", epilog="Example:  kattn data list")
def list_() -> None:
    """The data sets there are, and where each is or is looked for."""
    from kattn_cli.commands.listing import listing
    from kattn_cli.console import console

    console.print(listing("data", Path()))


@data_app.command(epilog="Example:  kattn data check fashion_mnist root=/usr/share/datasets/fashion-mnist")
def check(name: Name, options: Options = None) -> None:
    """Whether each file of a data set is there and undamaged, and how many images there are."""
    from kattn_cli.commands.data import check_data

    check_data(name, options or [])


@data_app.command(epilog="Example:  kattn data fetch mnist root=data/mnist")
def fetch(name: Name, options: Options = None) -> None:
    """Download what is missing of a data set into its root, then check it."""
    from kattn_cli.commands.data import fetch_data

    fetch_data(name, options or [])
