"""The tests of the tests: what they kill of a random sample of mutants (hours; run with ``-m mutation``)."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml
from mutation import EQUIVALENTS, ROOMS, ROOT, Mutant, function_of, measure, sample


@pytest.mark.mutation
@pytest.mark.parametrize("room", ROOMS)
def test_nineteen_of_twenty_mutants_are_killed(room: str, tmp_path: Path) -> None:
    row, survivors = measure(room, tmp_path / room, count=150, seed=0)
    assert float(str(row["share"])) >= 95, "\n".join(survivors)


def test_functions_of_mutants() -> None:
    assert function_of("kattn_cli.attacks.sld.x__sparse__mutmut_34") == "kattn_cli.attacks.sld._sparse"
    name = "kattn_cli.statistics.effect.xǁEffectǁp_apart__mutmut_3"
    assert function_of(name) == "kattn_cli.statistics.effect.Effect.p_apart"


def test_a_sample_is_the_same_for_the_same_seed() -> None:
    everything = [Mutant(f"m{number}", None) for number in range(100)]
    assert sample(everything, 10, 0) == sample(everything, 10, 0) != sample(everything, 10, 1)
    assert len(set(sample(everything, 200, 0))) == 100


def test_equivalent_mutants_are_of_code_that_is_there() -> None:
    """What is listed names a function, a line of it, and why no test can tell the change."""
    for one in yaml.safe_load(EQUIVALENTS.read_text(encoding="utf-8")):
        gone = [line[2:] for line in one["change"].splitlines() if line.startswith("- ")]
        assert one["why"], one
        assert all(line in _source(one["function"]) for line in gone), one["function"]


def _source(function: str) -> str:
    """Return the source of a function or method by its dotted name, each line without its indentation."""
    parts = function.split(".")
    for cut in range(len(parts) - 1, 0, -1):
        path = ROOT.joinpath(*parts[:cut]).with_suffix(".py")
        path = path if path.exists() else ROOT.joinpath(*parts[:cut], "__init__.py")
        if path.exists():
            break
    text = path.read_text(encoding="utf-8")
    nodes: list[ast.stmt] = ast.parse(text).body
    for name in parts[cut:]:
        node = next(one for one in nodes if isinstance(one, ast.ClassDef | ast.FunctionDef) and one.name == name)
        nodes = node.body
    return "\n".join(line.strip() for line in (ast.get_source_segment(text, node) or "").splitlines())
