"""The recipes of language models and sentences: the papers' sizes, schedules and numbers, and commands that run."""

from __future__ import annotations

import csv
import math
import re
import shlex
from itertools import product

import pytest
import torch
from recipe_comments import comment, expected, load, prose
from torch import nn

from kattn_cli.attention.options import check_options
from kattn_cli.experiment.recipes import option_faults_of
from kattn_cli.models import build_language_model, build_sequence_classifier, sequence_layers
from kattn_cli.papers import PAPERS
from kattn_cli.recipe.files import shipped_recipes
from kattn_cli.recipe.model import Decoder
from kattn_cli.recipe.schema import Recipe

SMALL = [f"language/shakespeare/{name}" for name in ("softmax", "symmetric", "rpc", "primal_plus", "tssa")]
PRIMAL = [f"language/wikitext103/{name}" for name in ("softmax", "primal_plus", "tssa")]
RPC = [f"language/wikitext103/{name}" for name in ("symmetric", "rpc")]
TOST = [f"language/openwebtext/{name}" for name in ("gpt2_base", "tost_base", "tost_medium", "tost_large")]
SENTENCES = [f"sentences/{task}_{name}" for task, name in product(("sst2", "sst5", "imdb"), ("symmetric", "rpc"))]
FULL = [*PRIMAL, *RPC, *TOST]
ALL = [*SMALL, *FULL, *SENTENCES]

TOKENS = {"wikitext103": 103_227_021, "openwebtext": 9_030_000_000}
"""Of the training text; of OpenWebText nearly: 99.9 % of the 9.04 billion that nanoGPT counts."""
VOCABULARY = {"wikitext103": 267_735, "openwebtext": 50_257, "text": 66}
MILLIONS = dict(zip(TOST, (124, 110, 304, 655), strict=True))
"""ToST paper, Table 4."""

PRINTED = {
    "language/wikitext103/softmax": ("primal", "table7b", "softmax"),
    "language/wikitext103/primal_plus": ("primal", "table7b", "primal_plus"),
    "language/wikitext103/symmetric": ("rpc", "table3", "symmetric"),
    "language/wikitext103/rpc": ("rpc", "table3", "rpc"),
    "language/openwebtext/gpt2_base": ("tost", "table4", "softmax"),
    "language/openwebtext/tost_base": ("tost", "table4", "tssa"),
    "language/openwebtext/tost_medium": ("tost", "table4", "tssa medium"),
    "language/openwebtext/tost_large": ("tost", "table4", "tssa large"),
    "sentences/sst2_symmetric": ("rpc", "table11", "symmetric", "SST-2"),
    "sentences/sst2_rpc": ("rpc", "table11", "rpc", "SST-2"),
    "sentences/sst5_symmetric": ("rpc", "table12", "softmax", "SST-5"),
    "sentences/sst5_rpc": ("rpc", "table12", "rpc", "SST-5"),
    "sentences/imdb_symmetric": ("rpc", "table11", "softmax", "IMDB"),
    "sentences/imdb_rpc": ("rpc", "table11", "rpc asymmetric", "IMDB"),
}
"""Of which paper, table and model the numbers of a comment are; of sentences, of which row."""


def commands(name: str) -> list[list[str]]:
    """What the comment says to type after ``kattn``, word by word."""
    joined = re.sub(r" \\\n +", " ", "\n".join(comment(name)))
    return [shlex.split(line)[1:] for line in joined.splitlines() if line.startswith("   kattn ")]


def trained(name: str) -> list[Recipe]:
    """The recipes of the comment's ``kattn train``, with their overrides."""
    found = [rest for command, *rest in commands(name) if command == "train"]
    return [load(recipe, *(word for word in rest if "=" in word)) for recipe, *rest in found]


def decoder(recipe: Recipe) -> Decoder:
    assert isinstance(recipe.model, Decoder)
    return recipe.model


def context(recipe: Recipe) -> int:
    return int(recipe.data.options.get("context", 0)) or int(recipe.data.options["seq_len"])


def built(recipe: Recipe) -> nn.Module:
    """The model, without memory for it."""
    facts = {"seq_len": context(recipe), "vocabulary": VOCABULARY.get(recipe.data.name, VOCABULARY["text"])}
    model = decoder(recipe)
    with torch.device("meta"):
        if not recipe.name.startswith("sentences/"):
            return build_language_model(model, recipe.attention, **facts)
        assert recipe.data.classes
        facts |= {"classes": recipe.data.classes, "channels": 0}
        return build_sequence_classifier(model, recipe.attention, pairs=False, mean=(), std=(), **facts)


def parameters(recipe: Recipe) -> int:
    return sum(parameter.numel() for parameter in built(recipe).parameters())


def steps(recipe: Recipe) -> int:
    """Of the optimizer, in all."""
    windows = (TOKENS[recipe.data.name] - 1) // context(recipe)
    whole, rest = divmod(windows, recipe.train.batch_size)
    return recipe.train.epochs * (whole + (rest >= recipe.train.accumulate))


def test_all_are_here() -> None:
    shipped = [name for name in shipped_recipes() if name.startswith(("language/", "sentences/"))]
    assert sorted(ALL) == [name for name in shipped if "/moe/" not in name]


@pytest.mark.parametrize("name", ALL)
def test_begins_with_what_it_is_and_how_to_run_it(name: str) -> None:
    title, *rest = comment(name)
    assert title.startswith(" ")
    assert title.endswith(".")
    assert all(line.startswith(" ") for line in rest)
    assert name in [one.name for one in trained(name)]
    assert load(name).name == name
    names = [one.name for one in trained(name)]
    assert len(names) == len(set(names)), "would be written over another's results"
    assert all(rest[0] == name for command, *rest in commands(name) if command in ("eval", "attack"))


@pytest.mark.parametrize("name", ALL)
def test_every_command_of_a_comment_trains_something(name: str) -> None:
    for recipe in trained(name):
        assert not option_faults_of(recipe.data)
        assert recipe.train.label_smoothing == 0, "perplexity is of the text as it is"
        for mechanism in (recipe.attention, *recipe.attention.layers.values()):
            assert not check_options(mechanism.name, mechanism.options, ())
        assert parameters(recipe) > 0


@pytest.mark.parametrize("name", ALL)
def test_overrides_that_a_comment_names(name: str) -> None:
    """In its prose: each changes the recipe."""
    for override in re.findall(r"(?:attention|train)\.[\w.:]+=\w+", prose(name)):
        assert load(name, override).model_dump() != load(name).model_dump()
        chosen = load(name, override).attention
        assert all(not check_options(one.name, one.options, ()) for one in (chosen, *chosen.layers.values()))


@pytest.mark.parametrize("name", MILLIONS)
def test_parameters_of_the_tost_paper(name: str) -> None:
    recipe = load(name)
    assert parameters(recipe) / 1e6 == pytest.approx(MILLIONS[name], rel=0.005)
    assert f" {MILLIONS[name]} M parameters" in prose(name)


def test_parameters_by_hand() -> None:
    """Words, places, blocks and the last norm; RPC-Attention adds none to symmetric attention."""
    words, width, mlp = VOCABULARY["wikitext103"], 512, 2048
    block = 4 * width * (width + 1) + 2 * width * mlp + width + mlp + 4 * width
    assert parameters(load("language/wikitext103/softmax")) == (words + 512) * width + 6 * block + 2 * width
    width = 128
    block = 3 * width * (width + 1) + 2 * width * mlp + width + mlp + 4 * width
    symmetric, rpc = (parameters(load(name)) for name in RPC)
    assert symmetric == rpc == (words + 256) * width + 16 * block + 2 * width


def test_sizes_of_the_papers() -> None:
    """Primal-Attention paper, §5 and Table 13; RPC-Attention paper, Appendix A; ToST paper, Table 6 and C.3."""
    sizes = {
        name: (model.depth, model.dim, model.heads, context(recipe))
        for name, recipe in ((name, load(name)) for name in FULL)
        for model in [decoder(recipe)]
    }
    assert {sizes[name] for name in PRIMAL} == {(6, 512, 8, 512)}
    assert {sizes[name] for name in RPC} == {(16, 128, 8, 256)}
    assert [sizes[name] for name in TOST] == [
        (12, 768, 12, 1024),
        (12, 768, 12, 1024),
        (24, 1024, 16, 1024),
        (36, 1280, 20, 1024),
    ]


@pytest.mark.parametrize(
    ("names", "total", "warm_up", "training"),
    [
        (PRIMAL, 156_000, 6_000, (64, 5e-4, 0.01)),
        (RPC, 500_000, 2_000, (96, 2.5e-4, 0.0)),
        (TOST, 600_000, 2_000, (480, 6e-4, 0.1)),
    ],
)
def test_schedules_of_the_papers(
    names: list[str], total: int, warm_up: int, training: tuple[int, float, float]
) -> None:
    """In whole epochs, and what that makes of the steps is told."""
    for name in names:
        recipe = load(name)
        assert (recipe.train.batch_size, recipe.train.lr, recipe.train.weight_decay) == training
        assert recipe.train.warmup_steps == warm_up
        here = steps(recipe)
        assert here == pytest.approx(total, rel=0.012)
        if recipe.data.name == "wikitext103":
            assert f" {here:,} steps" in prose(name)
            windows = (TOKENS["wikitext103"] - 1) // context(recipe)
            assert f"make {windows:,} windows of {context(recipe)} tokens" in prose(name)
        else:
            assert f"about {round(here, -3):,} steps" in prose(name)
        assert f"{warm_up:,}" in prose(name)


def test_logits_of_one_part_of_a_batch_fit() -> None:
    """A part of so many windows: at most 5 GB of logits in float32."""
    for name in FULL:
        recipe = load(name)
        assert recipe.train.batch_size % recipe.train.accumulate == 0
        windows = recipe.train.batch_size // recipe.train.accumulate
        assert 4 * windows * context(recipe) * VOCABULARY[recipe.data.name] < 5e9


@pytest.mark.parametrize("name", PRINTED)
def test_numbers_of_the_papers(name: str) -> None:
    """Every number of the paper's row stands in the comment."""
    paper, table, model, *row = PRINTED[name]
    with (PAPERS[paper].folder / "numbers.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    found = [one for one in rows if (one["table"], one["model"]) == (table, model)]
    found = [one for one in found if not row or one["row"] == row[0]]
    found = [one for one in found if not one["metric"].startswith("relative_")]
    assert found
    for one in found:
        number = one["value"]
        whole, dot, digits = number.partition(".")
        told = rf"(?<![\d.]){int(whole):,}{re.escape(dot + digits)}(?![\d])"
        assert float(number) in expected(name).values() or re.search(told, prose(name)), one
    label = {"table7b": "7(b)"}.get(table, table.removeprefix("table"))
    assert re.search(rf"(-Attention|ToST) paper, Table {re.escape(label)}[:.]", prose(name))


@pytest.mark.parametrize("name", FULL)
def test_full_size_names_a_small_sibling(name: str) -> None:
    assert "not run here" in prose(name)
    (sibling,) = re.findall(r"Small sibling: (language/\w+/\w+) \(two cores\)", prose(name))
    assert sibling in SMALL
    names = {"softmax": "gpt2_base", "tssa": "tost_"}
    short = sibling.rpartition("/")[2]
    assert name.rpartition("/")[2].startswith(names.get(short, short) if name in TOST else short)


@pytest.mark.parametrize(
    "names",
    [SMALL, PRIMAL, RPC, TOST[:2], *(SENTENCES[first : first + 2] for first in (0, 2, 4))],
    ids=lambda names: names[0],
)
def test_what_is_compared_differs_in_attention_alone(names: list[str]) -> None:
    recipes = [load(name) for name in names]
    for section in ("model", "train", "data", "seeds"):
        assert all(getattr(one, section) == getattr(recipes[0], section) for one in recipes)
    assert len({one.attention.model_dump_json() for one in recipes}) == len(recipes)


def mechanisms(name: str) -> list[str]:
    recipe = load(name)
    return [one.name for one in recipe.attention.per_layer(decoder(recipe).depth)]


def test_layers_of_the_papers() -> None:
    for name, depth in (("language/wikitext103/primal_plus", 6), ("language/shakespeare/primal_plus", 3)):
        assert mechanisms(name) == ["softmax"] * (depth - 1) + ["primal"]
        own = load(name).attention.layers[-1].options
        assert (own["eta"], own["projection"], own["convention"]) == (0.1, "data-independent", "reference")
    assert load("language/wikitext103/primal_plus").attention.layers[-1].options["s"] == 30
    assert mechanisms("language/wikitext103/rpc") == ["rpc"] * 4 + ["symmetric"] * 12
    assert mechanisms("language/shakespeare/rpc") == ["rpc", "symmetric", "symmetric"]
    for name in ("language/wikitext103/rpc", "language/shakespeare/rpc"):
        first = load(name).attention.per_layer(3)[0]
        assert (first.options["iterations"], first.options["lambda"]) == (4, 4)
    for name in SENTENCES:
        assert set(mechanisms(name)) == {name.rpartition("_")[2]}
        if name.endswith("_rpc"):
            options = load(name).attention.options
            assert (options["iterations"], options["lambda"]) == (2, 3)


def test_the_causal_forms_exist() -> None:
    for name in ALL:
        recipe = load(name)
        layers = sequence_layers(decoder(recipe), context(recipe))
        assert layers.causal
        with torch.device("meta"):
            assert [layers.build(one) for one in recipe.attention.per_layer(layers.depth)]


@pytest.mark.parametrize("name", SENTENCES)
def test_fine_tuning_begins_from_a_recipe_of_its_model(name: str) -> None:
    """All but the head comes from the language model, whose vocabulary is given with it."""
    source, tuned = trained(name)
    assert source.attention == load("language/shakespeare/symmetric").attention
    assert tuned.init_from == tuned.data.options["vocabulary_from"] == f"results/{source.name}/0"
    ours, theirs = built(tuned).state_dict(), built(source).state_dict()
    fits = {key for key, tensor in ours.items() if key in theirs and theirs[key].shape == tensor.shape}
    assert set(ours) - fits == {"backbone.head.weight", "backbone.head.bias"}
    assert set(theirs) == fits


def test_small_ones_fit_two_cores() -> None:
    """Less than a million parameters, and than a thousand steps of fewer than 5,000 tokens."""
    for name in SMALL:
        recipe = load(name)
        assert parameters(recipe) < 1e6
        assert recipe.train.batch_size * context(recipe) < 5000
        windows = math.floor(0.9 * 1_115_394) // context(recipe)
        assert recipe.train.epochs * windows // recipe.train.batch_size < 1000
