"""The plans behind the papers' tables: that they read, and that every line of theirs is a command there is."""

from __future__ import annotations

import shlex

import pytest
import typer
from pydantic import ValidationError

from kattn_cli.cli import app
from kattn_cli.errors import KattnError
from kattn_cli.papers import PAPERS
from kattn_cli.papers.plan import Measurement, Plan, Size, find_plans, plans
from kattn_cli.recipe.files import find_recipes

SIZES = [
    pytest.param(size, id=f"{name}-{kind}")
    for name, plan in plans().items()
    for kind, size in (("full", plan.full), ("small", plan.small))
    if size
]


@pytest.mark.parametrize("size", SIZES)
def test_recipes_are_there(size: Size) -> None:
    for recipe in size.recipes():
        assert find_recipes(recipe)


@pytest.mark.parametrize("size", SIZES)
def test_lines_are_commands(size: Size) -> None:
    """Typer reads each; an unknown option or a value out of range is an error there."""
    kattn = typer.main.get_command(app)
    assert hasattr(kattn, "commands")
    for line in [*size.prepare, *size.run, *size.measure]:
        verb, *options = shlex.split(line.run if isinstance(line, Measurement) else line)
        kattn.commands[verb].make_context(verb, [one.format(results="results") for one in options])


def test_a_plan_of_a_paper_is_of_a_table_of_it() -> None:
    for name in plans():
        paper, _, table = name.partition("/")
        if paper in PAPERS and name != "tost/table1":
            assert table in set(PAPERS[paper].numbers["table"]), name


def test_every_table_of_numbers_has_a_plan() -> None:
    """But those of architectures, which train nothing, and those of the first version alone."""
    without = {"primal/table13", "tost/table5", "tost/table6", "tost/table7"}
    for paper in PAPERS:
        tables = {f"{paper}/{table}" for table in PAPERS[paper].numbers["table"] if not table.startswith("v1_")}
        assert tables - without <= set(plans()), paper


def test_a_paper_means_all_of_its_tables_that_can_be_made() -> None:
    chosen = find_plans(["rpc", "tost/table3"])
    assert "rpc/table2" in chosen
    assert "rpc/table6" in chosen
    assert list(chosen)[-1] == "tost/table3"


def test_unknown_tables_and_sizes_are_told() -> None:
    with pytest.raises(KattnError, match=r'^rpc/tabel2: there is no such table; did you mean "rpc/table2"\?$'):
        find_plans(["rpc/tabel2"])
    with pytest.raises(KattnError, match=r"^rpc/table7: has no small size; leave out --small$"):
        plans()["rpc/table7"].size("small", "rpc/table7")
    with pytest.raises(KattnError, match=r"^primal/table9: has a small size alone: add --small$"):
        plans()["primal/table9"].size("full", "primal/table9")


def test_a_plan_has_a_size() -> None:
    with pytest.raises(ValidationError, match="a plan has a size"):
        Plan(title="nothing")
