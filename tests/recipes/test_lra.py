"""The recipes of Long-Range Arena: the sizes, schedules and numbers of both papers, and commands that can be run."""

from __future__ import annotations

import math
import re
import shlex
from itertools import product

import pytest
import torch
from recipe_comments import comment, expected, load, prose

from kattn_cli.attention.options import build_attention, check_options
from kattn_cli.data import DATASETS
from kattn_cli.recipe.files import shipped_recipes
from kattn_cli.recipe.model import Encoder
from kattn_cli.recipe.options import option_faults
from kattn_cli.recipe.schema import Recipe

TASKS = ("listops", "text", "retrieval", "image", "pathfinder", "path_x")
COMPARED = ("softmax", "primal", "primal_plus", "tssa")
ALL = [f"lra/{task}/{name}" for task, name in product(TASKS, (*COMPARED, "tost"))]
BASELINES = ("reformer", "performer", "linformer", "nystromformer", "longformer", "yoso_e")

TOKENS = {"listops": 2000, "text": 4000, "retrieval": 4000, "image": 1024, "pathfinder": 1024, "path_x": 16384}
TRAINED_ON = {
    "listops": 96_000,
    "text": 22_500,
    "retrieval": 147_086,
    "image": 45_000,
    "pathfinder": 160_000,
    "path_x": 160_000,
}
"""Sequences, those held out to choose the epoch by apart."""

TABLE_3 = {
    "listops": (37.1, 19.1, 18.8, 37.3, 37.2, 37.2, 37.3, 37.3, 37.3),
    "text": (65.0, 64.9, 63.8, 55.9, 65.5, 64.6, 64.7, 61.2, 65.4),
    "retrieval": (79.4, 78.6, 78.6, 79.4, 79.6, 81.0, 81.2, 77.8, 81.0),
    "image": (38.2, 43.3, 37.1, 37.8, 41.6, 39.1, 39.8, 43.0, 43.9),
    "pathfinder": (74.2, 69.4, 69.9, 67.6, 70.9, 73.0, 72.9, 68.3, 74.3),
}
"""Primal-Attention paper: softmax, the six baselines, Primal., Primal.+."""

TABLE_4 = {
    "softmax": ("194.5 5.50", "694.8 21.24", "1,333.7 18.72", "334.5 5.88", "405.5 5.88"),
    "primal_plus": ("113.4 5.24", "367.6 20.7", "546.5 18.59", "212.1 5.35", "263.2 5.35"),
    "primal": ("56.5 0.69", "93.6 1.37", "185.3 2.99", "142.9 1.39", "180.0 1.52"),
}
"""Primal-Attention paper: seconds for 1,000 steps and GB, in the order of the tasks."""

STEPS = {
    "listops": (32, 5_000, 1_000),
    "text": (32, 20_000, 8_000),
    "retrieval": (32, 30_000, 800),
    "image": (256, 35_000, 175),
    "pathfinder": (256, 62_400, 312),
}
"""Nyströmformer's program: batch, steps, and how many of them warm up."""

TOST_TABLE_3 = {
    "listops": (37.25, 37.11),
    "text": (66.75, 65.21),
    "retrieval": (79.46, 79.14),
    "image": (46.62, 42.94),
    "pathfinder": (69.41, 71.83),
}
"""ToST paper: ToST, a Transformer."""

TOST_TABLE_7 = {
    "listops": (6, 512, 8, 2048, 64, 1e-4, 0.1, 1e-2, 90_000, 3_000),
    "text": (4, 256, 4, 1024, 32, 1e-4, 0.1, 1e-2, 25_000, 10_000),
    "retrieval": (6, 128, 4, 512, 64, 1e-4, 0.1, 4e-2, 91_960, 10_000),
    "image": (8, 64, 8, 128, 64, 1e-4, 0.0, 2e-2, 180_000, 9_000),
    "pathfinder": (2, 64, 2, 128, 256, 2e-4, 0.1, 0.0, 200_000, 312),
}
"""ToST paper: layers, width, heads, MLP, batch, lr, dropout, weight decay, steps, warm-up."""


def commands(name: str) -> list[list[str]]:
    """The overrides of each ``kattn train`` in the comment, which all train this recipe."""
    joined = re.sub(r" \\\n +", " ", "\n".join(comment(name)))
    words = [shlex.split(line)[2:] for line in joined.splitlines() if line.startswith("   kattn train ")]
    assert all(recipe == name for recipe, *_ in words)
    return [rest for _, *rest in words]


def encoder(recipe: Recipe) -> Encoder:
    assert isinstance(recipe.model, Encoder)
    return recipe.model


def schedule(recipe: Recipe, task: str) -> tuple[int, int]:
    """Steps in all, and of the warm-up."""
    epoch = math.ceil(TRAINED_ON[task] / recipe.train.batch_size)
    return recipe.train.epochs * epoch, recipe.train.warmup_epochs * epoch


def test_all_are_here() -> None:
    shipped = [name for name in shipped_recipes() if name.startswith(tuple(f"lra/{task}/" for task in TASKS))]
    assert sorted(ALL) == shipped


@pytest.mark.parametrize("name", ALL)
def test_begins_with_what_it_is_and_how_to_run_it(name: str) -> None:
    title, *rest = comment(name)
    assert title.startswith(" ")
    assert title.endswith(".")
    assert all(line.startswith(" ") for line in rest)
    assert commands(name)[0] == []
    assert load(name).name == name
    assert "not run here" in prose(name).lower()
    assert re.search(r"Small sibling: lra/small/(listops|image)/(softmax|primal|primal_plus|tssa) ", prose(name))


@pytest.mark.parametrize("name", ALL)
def test_every_command_of_a_comment_asks_for_what_can_be_built(name: str) -> None:
    names = set()
    for overrides in commands(name):
        recipe = load(name, *overrides)
        model = encoder(recipe)
        for mechanism in recipe.attention.per_layer(model.depth):
            assert not check_options(mechanism.name, mechanism.options, ())
            with torch.device("meta"):
                build_attention(
                    mechanism.name,
                    mechanism.options,
                    dim=model.dim,
                    heads=model.heads,
                    seq_len=TOKENS[name.split("/")[1]],
                )
        assert recipe.name not in names, "would be written over another's results"
        names.add(recipe.name)


@pytest.mark.parametrize("task", TASKS)
def test_data(task: str) -> None:
    """One section for all recipes of a task, whose options are those of its data set."""
    sections = [load(f"lra/{task}/{name}").data for name in (*COMPARED, "tost")]
    assert all(section == sections[0] for section in sections)
    source = DATASETS[sections[0].name]
    assert not option_faults(source, sections[0].options, ())
    assert sections[0].classes == (10 if task in ("listops", "image") else 2)
    length = {"text": {"vocabulary": "bytes", "seq_len": 4000}, "retrieval": {"seq_len": 4000}, "path_x": {"size": 128}}
    assert sections[0].options == length.get(task, {})


@pytest.mark.parametrize("task", TASKS)
def test_recipes_to_be_compared_differ_in_attention_alone(task: str) -> None:
    recipes = [load(f"lra/{task}/{name}") for name in COMPARED]
    for section in ("model", "train", "data", "seeds"):
        assert [getattr(one, section) for one in recipes] == [getattr(recipes[0], section)] * len(recipes)
    assert len({one.attention.model_dump_json() for one in recipes}) == len(recipes)


@pytest.mark.parametrize("task", TASKS)
def test_size_and_schedule_of_the_primal_attention_paper(task: str) -> None:
    """§5: 2 layers, 2 heads, embedding 64, hidden 128; its supplement, Table 13: heads of 32."""
    recipe = load(f"lra/{task}/softmax")
    model = encoder(recipe)
    assert (model.depth, model.dim, model.heads, model.dim * model.mlp_ratio) == (2, 64, 2, 128)
    batch, steps, warm_up = STEPS["pathfinder" if task == "path_x" else task]
    assert recipe.train.batch_size == batch
    here, warm_up_here = schedule(recipe, task)
    assert here == pytest.approx(steps, rel=0.08 if task != "listops" else 0.2)
    nearest = max(1, round(warm_up * recipe.train.epochs / here))
    assert recipe.train.warmup_epochs == nearest
    assert (recipe.train.lr, recipe.train.weight_decay, model.dropout) == (1e-4, 0, 0.1)
    for number in (here, steps, warm_up_here, warm_up):
        assert re.search(rf"\b{number:,}\b", prose(recipe.name))


@pytest.mark.parametrize("task", TABLE_3)
def test_numbers_of_the_primal_attention_paper(task: str) -> None:
    softmax, *others, primal, primal_plus = TABLE_3[task]
    for name, number in (("softmax", softmax), ("primal", primal), ("primal_plus", primal_plus)):
        seconds, memory = TABLE_4[name][list(TABLE_3).index(task)].split()
        of_both = {"top-1": number, "seconds for 1000 steps": float(seconds.replace(",", "")), "GB": float(memory)}
        assert expected(f"lra/{task}/{name}") == of_both
        assert "Primal-Attention paper, Tables 3 and 4" in prose(f"lra/{task}/{name}")
    text = prose(f"lra/{task}/softmax")
    names = ("Reformer", "Performer", "Linformer", "Nyströmformer", "Longformer", "YOSO-E")
    assert ", ".join(f"{name} {number}" for name, number in zip(names, others, strict=True)) + " %." in text
    assert f"softmax {softmax} %" in prose(f"lra/{task}/tssa")


@pytest.mark.parametrize("task", TASKS)
def test_baselines_by_override(task: str) -> None:
    trained = [load(f"lra/{task}/softmax", *overrides) for overrides in commands(f"lra/{task}/softmax")]
    assert [one.name for one in trained[1:]] == [f"lra/{task}/{name}" for name in BASELINES]
    assert [one.attention.name for one in trained[1:]] == list(BASELINES)


@pytest.mark.parametrize(("task", "name"), list(product(TASKS, ("primal", "primal_plus"))))
def test_the_grid_of_primal_attention(task: str, name: str) -> None:
    """§5: η one of 0.05 and 0.1, s one of 20 and 30; B.1: rank_multi 10."""
    cells = set()
    for overrides in commands(f"lra/{task}/{name}"):
        first, last = load(f"lra/{task}/{name}", *overrides).attention.per_layer(2)
        assert first.name == ("primal" if name == "primal" else "softmax")
        assert (last.name, last.options["rank_multi"]) == ("primal", 10)
        assert name == "primal_plus" or first.options == last.options
        cells.add((last.options["s"], last.options["eta"]))
    assert cells == set(product((20, 30), (0.05, 0.1)))


@pytest.mark.parametrize("task", TASKS)
def test_size_and_schedule_of_the_tost_paper(task: str) -> None:
    recipe = load(f"lra/{task}/tost")
    model, train = encoder(recipe), recipe.train
    depth, dim, heads, mlp, batch, lr, dropout, decay, steps, warm_up = TOST_TABLE_7[
        "pathfinder" if task == "path_x" else task
    ]
    assert (model.depth, model.dim, model.heads, model.dim * model.mlp_ratio) == (depth, dim, heads, mlp)
    assert (train.batch_size, train.lr, model.dropout, train.weight_decay) == (batch, lr, dropout, decay)
    here, warm_up_here = schedule(recipe, task)
    assert here == pytest.approx(steps, rel=0.02)
    assert train.warmup_epochs == max(1, round(warm_up * train.epochs / here))
    for number in (here, steps, warm_up_here, warm_up):
        assert re.search(rf"\b{number:,}\b", prose(recipe.name))
    assert recipe.attention.name == "tssa"
    assert [load(recipe.name, *overrides).attention.name for overrides in commands(recipe.name)] == ["tssa", "softmax"]


@pytest.mark.parametrize("task", TOST_TABLE_3)
def test_numbers_of_the_tost_paper(task: str) -> None:
    tost, transformer = TOST_TABLE_3[task]
    assert expected(f"lra/{task}/tost") == {"top-1": tost}
    assert f"those of ToST paper, Table 3 (a Transformer: {transformer})." in prose(f"lra/{task}/tost")
