"""The claims themselves: each has a command that names what there is, and none is there twice."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from kattn_cli.cli import COMMANDS
from kattn_cli.papers import PAPERS
from kattn_cli.papers.claim import Claim, Kind
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
    rules = ("better above 0", "better below 0") if claim.margin else ("holds above", "holds below", "a number")
    assert any(rule in " ".join(claim.criterion.split()) for rule in rules)
    assert claim.rule.startswith(claim.criterion)
    program, command, *words = claim.command.split()
    assert (program, command in COMMANDS) == ("kattn", True)
    if command in ("benchmark", "complexity", "decoding"):
        return
    recipes = [path for word in words if NAME.fullmatch(word) for path in find_recipes(word)]
    overrides = [word for word in words if "=" in word]
    assert all(load_recipe(path, kinds(), overrides).name for path in recipes)


def test_classes_are_what_they_can_be() -> None:
    """A margin is for comparisons of seeds; what is counted has none; only what needs a scale is bound to one."""
    assert {claim.classed for claim in CLAIMS} == {"statistical", "arithmetic", "measurement", "scale-bound"}
    assert all(claim.kind is Kind.statistical for claim in CLAIMS if claim.margin)
    assert all(str(claim.scale) for claim in CLAIMS if claim.scale)
    by_class = Counter(claim.classed for claim in CLAIMS)
    assert by_class == {"statistical": 66, "scale-bound": 17, "measurement": 9, "arithmetic": 3}
