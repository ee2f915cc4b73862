"""The recipes of Decision Transformers: the papers' sizes, layers, schedules and numbers, and their small siblings."""

from __future__ import annotations

import csv
import re
import shlex
from collections.abc import Iterator

import pytest
import torch
from recipe_comments import comment, expected, load, prose

from kattn_cli.attention.options import check_options
from kattn_cli.environments.names import ENVIRONMENTS
from kattn_cli.experiment.recipes import option_faults_of
from kattn_cli.models import build_decision_transformer, trajectory_layers
from kattn_cli.models.decision_transformer import DecisionTransformer
from kattn_cli.papers import PAPERS
from kattn_cli.recipe.files import shipped_recipes
from kattn_cli.recipe.model import DecisionTransformer as Sizes
from kattn_cli.recipe.schema import Recipe

ALL = [name for name in shipped_recipes() if name.startswith("control/")]
FULL = [name for name in ALL if not name.startswith("control/small/")]
PAPER = {"hopper": "Hopper", "halfcheetah": "HalfCheetah", "walker2d": "Walker"}
"""Rows of Table 5."""
MODELS = ("softmax", "primal_plus", "tssa")
SMALL = [f"control/small/{one}/{name}" for one in PAPER for name in MODELS]
TRANSITIONS = {"medium": 1_000_000, "medium_expert": 2_000_000}
REPLAY = {"hopper": 402_000, "halfcheetah": 202_000, "walker2d": 302_000}
"""Of D4RL's sets, about."""
LEVELS = {"Medium": "medium", "Medium-Replay": "medium_replay", "Medium-Expert": "medium_expert"}


def published(table: str) -> dict[tuple[str, str], str]:
    """The Primal-Attention paper's numbers by row and model."""
    with (PAPERS["primal"].folder / "numbers.csv").open(newline="") as file:
        return {(one["row"], one["model"]): one["value"] for one in csv.DictReader(file) if one["table"] == table}


def environment(name: str) -> str:
    return name.split("/")[1]


def commands(name: str) -> Iterator[list[str]]:
    """The words behind ``kattn`` of each command."""
    text = "\n".join(comment(name)).replace("\\\n", " ")
    for line in text.splitlines():
        if line.startswith("   kattn "):
            yield shlex.split(line)[1:]


def trained(name: str) -> list[Recipe]:
    """What the commands of a comment train."""
    found = [words for command, *words in commands(name) if command == "train"]
    return [load(recipe, *overrides) for recipe, *overrides in found]


def sizes(recipe: Recipe) -> Sizes:
    assert isinstance(recipe.model, Sizes)
    return recipe.model


def built(recipe: Recipe, states: int = 11, actions: int = 3) -> DecisionTransformer:
    facts = {"mean": [0.0] * states, "std": [1.0] * states, "action_low": [-1.0] * actions, "return_scale": 1000.0}
    with torch.device("meta"):
        return build_decision_transformer(
            sizes(recipe),
            recipe.attention,
            states=states,
            actions=actions,
            context=int(recipe.data.options["context"]),
            longest=1000,
            action_high=[1.0] * actions,
            **facts,  # type: ignore[arg-type]
        )


def test_all_are_here() -> None:
    full = {f"control/{one}/{name}" for one in ENVIRONMENTS for name in MODELS}
    assert set(ALL) == full | set(SMALL) | {"control/small/corridor"}


@pytest.mark.parametrize("name", ALL)
def test_begins_with_what_it_is_and_how_to_run_it(name: str) -> None:
    title, *rest = comment(name)
    assert title.startswith(" ")
    assert title.endswith(".")
    assert all(line.startswith(" ") for line in (title, *rest))
    assert load(name).name == name
    names = [one.name for one in trained(name)]
    assert name in names
    assert len(names) == len(set(names)), "would be written over another's results"
    assert all(words[0] == name for command, *words in commands(name) if command in ("eval", "plot"))


@pytest.mark.parametrize("name", ALL)
def test_every_command_of_a_comment_trains_something(name: str) -> None:
    """Every mechanism is causal, for three tokens a step."""
    for recipe in trained(name):
        assert not option_faults_of(recipe.data)
        assert recipe.train.label_smoothing == 0
        layers = trajectory_layers(sizes(recipe), int(recipe.data.options["context"]))
        for mechanism in recipe.attention.per_layer(layers.depth):
            assert not check_options(mechanism.name, mechanism.options, ())
        assert sum(one.numel() for one in built(recipe).parameters()) > 0


@pytest.mark.parametrize("name", FULL)
def test_the_papers_setting(name: str) -> None:
    """Primal-Attention paper, §5, and Decision Transformer, Table 9: 100,000 steps in whole epochs."""
    for recipe in trained(name):
        model, train = sizes(recipe), recipe.train
        assert (model.depth, model.dim, model.heads, model.dropout, model.mlp_ratio) == (3, 256, 4, 0.1, 4.0)
        assert (train.batch_size, train.lr, train.min_lr, train.weight_decay) == (64, 1e-4, 1e-4, 1e-4)
        assert (train.warmup_steps, train.clip_grad, recipe.seeds) == (10_000, 0.25, [0, 1, 2])
        options = recipe.data.options
        assert (options["context"], options["environment"]) == (20, environment(name))
        transitions = {**TRANSITIONS, "medium_replay": REPLAY[environment(name)]}[options["level"]]
        steps = train.epochs * 0.95 * transitions / 64
        assert steps == pytest.approx(100_000, rel=0.12)
        epoch = round(0.95 * transitions / 64, -1)
        assert f" {epoch:,.0f}" in prose(name)


def test_layers_of_the_paper() -> None:
    """B.1: the last layer is causal Primal-Attention with data-independent weights, η = 0.05; s of the grid."""
    for name in (*FULL, *SMALL):
        kind = name.rpartition("/")[2]
        for recipe in trained(name):
            names = [one.name for one in recipe.attention.per_layer(3)]
            assert kind != "primal_plus" or names == ["softmax", "softmax", "primal"]
            assert kind != "tssa" or names == ["tssa"] * 3
            if kind == "primal_plus":
                options = recipe.attention.layers[-1].options
                assert (options["eta"], options["projection"]) == (0.05, "data-independent")
                assert options["s"] in (32, 64, 96)


@pytest.mark.parametrize("name", [name for name in FULL if name.endswith("primal_plus")])
def test_s_is_the_best_of_table_10(name: str) -> None:
    table = published("table10")
    for recipe in trained(name):
        level = {value: key for key, value in LEVELS.items()}[recipe.data.options["level"]]
        row = f"{level} {PAPER[environment(name)]}"
        best = max((32, 64, 96), key=lambda s: float(table[f"{row} s={s}", "primal_plus"]))
        assert recipe.attention.layers[-1].options["s"] == best


@pytest.mark.parametrize("name", FULL)
def test_numbers_of_the_paper(name: str) -> None:
    """Of each level, and of the other columns where the comment has their commands."""
    table = published("table5")
    models = {"primal_plus": ["primal_plus"], "tssa": ["softmax"]}.get(name.rpartition("/")[2])
    for model in models or ["softmax", "linear", "reformer", "performer", "cosformer", "flowformer"]:
        for level in LEVELS:
            number = table[f"{level} {PAPER[environment(name)]}", model]
            own = model == name.rpartition("/")[2]
            told = expected(name)[f"normalised score of {level}"] if own else prose(name)
            assert told == float(number) if own else f"{number} ({level})" in str(told)
        if not models and model != "softmax":
            assert model in [one.attention.name for one in trained(name)]


@pytest.mark.parametrize("name", FULL)
def test_full_size_names_a_small_sibling(name: str) -> None:
    assert "not run here" in prose(name)
    (sibling,) = re.findall(r"Small sibling: ([\w/]+) \(one core\)", prose(name))
    assert sibling == name.replace("control/", "control/small/")


@pytest.mark.parametrize("folder", [f"control/{size}{one}" for size in ("small/", "") for one in PAPER])
def test_what_is_compared_differs_in_attention_alone(folder: str) -> None:
    recipes = [load(f"{folder}/{name}") for name in MODELS]
    for section in ("model", "train", "data", "seeds"):
        assert all(getattr(one, section) == getattr(recipes[0], section) for one in recipes)
    assert len({one.attention.model_dump_json() for one in recipes}) == len(recipes)


def test_small_ones_fit_one_core() -> None:
    """Less than a quarter of a million parameters."""
    for name in (*SMALL, "control/small/corridor"):
        assert sum(one.numel() for one in built(load(name)).parameters()) < 250_000


def test_overrides_that_a_comment_names() -> None:
    """In its prose: each changes the recipe, and together they are sound."""
    text = prose("control/small/corridor")
    assert "attention=tssa" in text
    overrides = re.findall(r"attention\.layers[\w.:-]+=[\w-]+\w", text)
    assert overrides == ["attention.layers.-1.name=primal", "attention.layers.-1.projection=data-independent"]
    changed = load("control/small/corridor", *overrides)
    assert type(built(changed, 2, 1).mechanisms()[-1]).__name__ == "PrimalAttention"
