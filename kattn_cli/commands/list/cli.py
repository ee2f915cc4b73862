"""``kattn list``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import ResultsOption
from kattn_cli.errors import KattnError

EXAMPLE = "Example:  kattn list attention"


class Kind(str, Enum):
    """What ``kattn list`` can list."""

    attention = "attention"
    data = "data"
    models = "models"
    attacks = "attacks"
    recipes = "recipes"
    runs = "runs"


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
