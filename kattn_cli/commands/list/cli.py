"""``kattn list``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.list.listing import LISTS, attention_table, listing
from kattn_cli.commands.options import ResultsOption
from kattn_cli.errors import KattnError

EXAMPLE = "Example:  kattn list attention"


Kind = Enum("Kind", {name: name for name in LISTS}, type=str)  # type: ignore[misc]
"""What ``kattn list`` can list."""


def list_(
    kind: Annotated[Kind, typer.Argument(help="What to list.")] = Kind["recipes"],
    markdown: Annotated[bool, typer.Option("--markdown", help="The mechanisms as the README's table.")] = False,
    results: ResultsOption = Path("results"),
) -> None:
    """What there is: mechanisms, data sets, models, attacks, recipes, runs."""
    from kattn_cli.console import console

    console.quiet = False
    if markdown:
        if kind.value != "attention":
            raise KattnError(f"--markdown: only attention has such a table, not {kind.value}")
        console.print(attention_table())
        return
    console.print(listing(kind.value, results))
