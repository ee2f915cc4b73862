"""Recipes that stand for several: their points, and the text of every fault."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from kattn_cli.errors import RecipeError
from kattn_cli.experiment.recipes import load, load_sweep
from kattn_cli.recipe.sweep import Point, spelled

BASE = """\
name: base
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}
attention: {name: primal, s: 4, eta: 0.05}
train: {epochs: 2}
"""


def points(
    folder: Path, sweep: str, *overrides: str, over: Sequence[str] = (), seeds: Sequence[int] = ()
) -> list[Point]:
    path = folder / "base.yaml"
    path.write_text(BASE + sweep, encoding="utf-8")
    return load_sweep(path, overrides, over, seeds)


def faults(folder: Path, sweep: str, *overrides: str, over: Sequence[str] = (), seeds: Sequence[int] = ()) -> list[str]:
    """The lines of the message after the first, which counts them."""
    with pytest.raises(RecipeError) as caught:
        points(folder, sweep, *overrides, over=over, seeds=seeds)
    first, *lines = str(caught.value).splitlines()
    assert first == f"{folder / 'base.yaml'}: {len(lines)} fault{'s' * (len(lines) > 1)}, nothing was started"
    return [" ".join(line.split()) for line in lines]


def test_a_grid_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = points(
        tmp_path, "sweep: {attention.eta: [0.1, 0.2], attention.s: [3, 4], seed: [0, 7]}\n", "train.epochs=5"
    )
    assert [str(point) for point in found] == [
        f"attention.eta={eta} attention.s={s} seed={seed}" for eta in (0.1, 0.2) for s in (3, 4) for seed in (0, 7)
    ]
    assert [point.number for point in found] == list(range(1, 9))
    third = found[2].recipe
    assert (third.attention.options["eta"], third.attention.options["s"], third.seed) == (0.1, 4, 0)
    assert {point.recipe.train.epochs for point in found} == {5}


def test_a_point_is_the_recipe_that_train_would_make_of_it(tmp_path: Path) -> None:
    found = points(tmp_path, "sweep: {attention: [softmax, {name: rpc, iterations: 2}], model.dim: [8]}\n")
    plain = tmp_path / "plain.yaml"
    plain.write_text(BASE, encoding="utf-8")
    for point in found:
        assert load(plain, point.overrides) == point.recipe


def test_a_list_of_settings(tmp_path: Path) -> None:
    sweep = "sweep:\n  - {attention.eta: 0.1, seed: 3}\n  - {attention.name: softmax, attention: softmax}\n"
    assert [str(point) for point in points(tmp_path, sweep)] == [
        "attention.eta=0.1 seed=3",
        "attention.name=softmax attention=softmax seed=0",
    ]
    doubled = points(tmp_path, "sweep: [{attention.eta: 0.1}, {attention.s: 2}]\n", over=["train.lr=[1e-3,2e-3]"])
    assert [str(point) for point in doubled] == [
        f"{first} train.lr={lr} seed=0" for first in ("attention.eta=0.1", "attention.s=2") for lr in (0.001, 0.002)
    ]


@pytest.mark.parametrize("values", ["[0.1,0.2]", "0.1,0.2", "[0.1, 0.2]"])
def test_the_command_line_goes_before_the_file(tmp_path: Path, values: str) -> None:
    found = points(tmp_path, "sweep: {attention.eta: [1, 2, 3]}\n", over=[f"attention.eta={values}"], seeds=[4, 5])
    assert [str(point) for point in found] == [
        f"attention.eta={eta} seed={seed}" for eta in (0.1, 0.2) for seed in (4, 5)
    ]


def test_seeds_alone(tmp_path: Path) -> None:
    assert [str(point) for point in points(tmp_path, "", seeds=[1, 2])] == ["seed=1", "seed=2"]
    assert [str(point) for point in points(tmp_path, "seeds: [1, 2]\n")] == ["seed=1", "seed=2"]


def test_all_faults_of_all_points_in_one_message(tmp_path: Path) -> None:
    sweep = "sweep:\n  attention.eta: [0,\n    x]\n  attention.etta: [3]\n  model.patch_size: [2, 3]\n  seed: [0, -2]\n"
    assert faults(tmp_path, sweep, "train.epochs=x") == [
        'line 8 sweep.attention.eta[1] expected a number, not "x"',
        'line 9 sweep.attention.etta[0] unknown key; did you mean "eta"?',
        "line 10 sweep.model.patch_size[1] must divide the image size, 8, and 3 does not",
        "line 11 sweep.seed[1] must be at least 0, not -2",
        'command line train.epochs expected a whole number, not "x"',
    ]


def test_a_fault_of_two_keys_together_names_the_other(tmp_path: Path) -> None:
    told = faults(tmp_path, "sweep: {attention: [primal, softmax], attention.eta: [0.1], seed: [0, 1]}\n")
    assert told == ["line 6 sweep.attention.eta[0] unknown key (in 2 points, the first with attention=softmax seed=0)"]
    listed = faults(tmp_path, "sweep:\n  - {attention.eta: 0.1}\n  - {attention.eta: -1}\n")
    assert listed == ["line 8 sweep[1].attention.eta must be at least 0, not -1"]


@pytest.mark.parametrize(
    ("sweep", "over", "told"),
    [
        ("sweep: {attention.eta: 0.1}\n", [], "line 6 sweep.attention.eta expected a list of values to try, not 0.1"),
        (
            "sweep: {attention: {eta: [1]}}\n",
            [],
            "line 6 sweep.attention expected a list of values to try, not a mapping; write attention.KEY: [… , …]",
        ),
        (
            "sweep: {attention.eta: []}\n",
            [],
            "line 6 sweep.attention.eta expected a list of values to try, not an empty one",
        ),
        ("sweep: 3\n", [], "line 6 sweep expected a mapping of keys to lists of values, or a list of mappings, not 3"),
        (
            "sweep: [3]\n",
            [],
            "line 6 sweep[0] expected a mapping of keys to values, such as {attention.eta: 0.1}, not 3",
        ),
        ("", [], "sweep is missing, and neither --over KEY=[VALUE,VALUE] nor --seed says what to try"),
        (
            "sweep: {name: [a, b]}\n",
            [],
            "line 6 sweep.name cannot be swept: all points of a sweep are runs of one recipe",
        ),
        ("sweep: {seeds: [[1], [2]]}\n", [], 'line 6 sweep.seeds cannot be swept; sweep over "seed"'),
        (
            "sweep: {train.epochs: [1, 2]}\n",
            [],
            "line 6 sweep.train.epochs is swept, and train.epochs=… gives it one value: leave one of the two out",
        ),
        (
            "",
            ["eta"],
            "command line --over eta expected KEY=[VALUE,VALUE], for example attention.eta=[0.1,0.2]",
        ),
        (
            "sweep: [{attention.eta: 1}]\n",
            ["attention.eta=[2]"],
            "command line --over attention.eta is in the list of the file's sweep already",
        ),
        (
            "sweep: {attention.eta: [0.05, 0.1, 5e-2]}\n",
            [],
            "line 6 sweep comes to one recipe and seed twice: attention.eta=0.05 seed=0, and attention.eta=0.05 seed=0",
        ),
    ],
)
def test_faults(tmp_path: Path, sweep: str, over: list[str], told: str) -> None:
    assert faults(tmp_path, sweep, "train.epochs=3", over=over) == [told]


def test_more_points_than_anybody_means(tmp_path: Path) -> None:
    hundred = ",".join(map(str, range(101)))
    over = [f"attention.eta={hundred}", f"seed={hundred}"]
    assert faults(tmp_path, "", over=over) == ["sweep comes to 10,201 points; 10,000 are the most"]


def test_seeds_are_given_once(tmp_path: Path) -> None:
    told = "line 6 sweep.seed is swept, and --seed gives seeds too: leave one of the two out"
    assert faults(tmp_path, "sweep: {seed: [0, 1]}\n", seeds=[3]) == [told]


def test_train_says_to_use_sweep(tmp_path: Path) -> None:
    path = tmp_path / "base.yaml"
    path.write_text(BASE + "sweep: {seed: [0, 1]}\n", encoding="utf-8")
    told = f"{path}: stands for several recipes (sweep: on line 6); train them with: kattn sweep {path}"
    with pytest.raises(RecipeError) as caught:
        load(path)
    assert str(caught.value) == told


@pytest.mark.parametrize(
    ("value", "text"), [(0.1, "0.1"), (True, "true"), (None, "null"), ("1:", "1:"), ({"name": "rpc"}, "{name: rpc}")]
)
def test_values_as_one_would_type_them(value: object, text: str) -> None:
    assert spelled(value) == text
