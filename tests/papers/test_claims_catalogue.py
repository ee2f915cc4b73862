"""The claims themselves: each has a command that names what there is, and none is there twice."""

from __future__ import annotations

import re

import pytest

from kattn_cli.cli import COMMANDS
from kattn_cli.papers import PAPERS
from kattn_cli.papers.claim import Claim
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.load import load_recipe
from kattn_cli.tasks import kinds

NAME = re.compile(r"(?!decoder/|test$|validation$|forward)[a-z][a-z0-9_]*(/[a-z0-9_]+)*")
"""Of a recipe or a folder of recipes, and no option's value."""
CLAIMS = [claim for paper in PAPERS.values() for claim in paper.claims]


def test_every_paper_has_claims_and_none_twice() -> None:
    assert {name: paper.name for name, paper in PAPERS.items()} == {name: name for name in PAPERS}
    assert min(len(paper.claims) for paper in PAPERS.values()) >= 5
    assert len({(claim.where, claim.text) for claim in CLAIMS}) == len(CLAIMS)


@pytest.mark.parametrize("claim", CLAIMS, ids=lambda claim: claim.text)
def test_a_claim_says_when_it_holds_and_its_command_names_recipes_that_there_are(claim: Claim) -> None:
    assert "holds " in claim.criterion
    program, command, *words = claim.command.split()
    assert (program, command in COMMANDS) == ("kattn", True)
    if command in ("complexity", "decoding"):
        return
    recipes = [path for word in words if NAME.fullmatch(word) for path in find_recipes(word)]
    overrides = [word for word in words if "=" in word]
    assert all(load_recipe(path, kinds(), overrides).name for path in recipes)
