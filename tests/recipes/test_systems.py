"""The recipes of FAN, ViT-base and mixtures of experts: the papers' sizes, numbers and layers; commands that run."""

from __future__ import annotations

import csv
import re
import shlex
from typing import Any

import pytest
import torch
from recipe_comments import comment, expected, load, prose
from torch import nn

from kattn_cli.attention.options import check_options
from kattn_cli.experiment.recipes import option_faults_of
from kattn_cli.models import build_language_model, build_model, build_sequence_classifier
from kattn_cli.models.transfer import match
from kattn_cli.papers import PAPERS
from kattn_cli.recipe.data import ImageSection
from kattn_cli.recipe.files import shipped_recipes
from kattn_cli.recipe.model import Decoder, Encoder, TimmModel, Tost
from kattn_cli.recipe.schema import Recipe

FAN = [f"imagenet/{name}" for name in ("fan_tiny", "sym_fan_tiny", "rpc_fan_tiny")]
SMALL_FAN = [f"fashion_mnist/fan/{name}" for name in ("softmax", "symmetric", "rpc")]
BASE = ["imagenet/symvit_base", "imagenet/rpc_all_symvit_base"]
KINDS = ("symmetric", "softmax")
LANGUAGE = [f"language/moe/{name}" for name in KINDS]
SMALL_LANGUAGE = [f"language/moe/small_{name}" for name in KINDS]
TUNED = [f"sentences/moe/{name}" for name in ("symmetric", "rpc_symmetric", "softmax", "rpc_softmax")]
SMALL_TUNED = [name.replace("/moe/", "/moe/small_") for name in TUNED]
MIXTURES = [*LANGUAGE, *SMALL_LANGUAGE, *TUNED, *SMALL_TUNED]
FULL = [*FAN, *LANGUAGE, *TUNED]
ALL = [*FAN, *SMALL_FAN, *MIXTURES]

PRINTED = {
    "imagenet/sym_fan_tiny": [("table9", "IN-1K", "FAN-tiny")],
    "imagenet/rpc_fan_tiny": [("table9", "IN-1K", "RPC-FAN-tiny")],
    "imagenet/symvit_base": [("table7", "IN-1K", "symmetric base")],
    "imagenet/rpc_all_symvit_base": [("table7", "IN-1K", "rpc 2 all base")],
    "sentences/moe/symmetric": [("table11", "SST-2", "symmetric")],
    "sentences/moe/rpc_symmetric": [("table11", "SST-2", "rpc")],
    "sentences/moe/softmax": [("table11", "SST-2", "softmax"), ("table11", "IMDB", "softmax")],
    "sentences/moe/rpc_softmax": [("table11", "SST-2", "rpc asymmetric"), ("table11", "IMDB", "rpc asymmetric")],
}
"""The paper's rows whose numbers stand in a comment: table, row, model."""

WORDS, SMALL_VOCABULARY = 267_735, 2048
WINDOWS = (103_227_021 - 1) // 512
"""Of WikiText-103's training text."""


def trained(name: str) -> list[Recipe]:
    """The recipes of the comment's ``kattn train``, with their overrides."""
    joined = re.sub(r" \\\n +", " ", "\n".join(comment(name)))
    lines = [shlex.split(line)[2:] for line in joined.splitlines() if line.startswith("   kattn train ")]
    return [load(recipe, *(word for word in rest if "=" in word)) for recipe, *rest in lines]


def built(recipe: Recipe) -> nn.Module:
    """The model, without memory for it."""
    model, data = recipe.model, recipe.data
    with torch.device("meta"):
        if isinstance(data, ImageSection):
            assert isinstance(model, TimmModel | Tost)
            channels = data.channels or 3
            size: dict[str, Any] = {"image_size": data.image_size or 28, "channels": channels, "classes": data.classes}
            model = model.model_copy(update={"drop_path": 0.0})
            return build_model(model, recipe.attention, **size, mean=[0.5] * channels, std=[0.25] * channels)
        assert isinstance(model, Decoder)
        vocabulary = SMALL_VOCABULARY if "small_" in recipe.name else WORDS
        if "context" in data.options:
            length = int(data.options["context"])
            return build_language_model(model, recipe.attention, seq_len=length, vocabulary=vocabulary)
        facts: dict[str, Any] = {"seq_len": int(data.options["seq_len"]), "classes": data.classes, "channels": 0}
        facts |= {"vocabulary": vocabulary, "pairs": False, "mean": (), "std": ()}
        return build_sequence_classifier(model, recipe.attention, **facts)


def parameters(recipe: Recipe) -> int:
    return sum(parameter.numel() for parameter in built(recipe).parameters())


def mechanisms(name: str, depth: int) -> list[str]:
    return [one.name for one in load(name).attention.per_layer(depth)]


def test_all_are_here() -> None:
    shipped = [name for name in shipped_recipes() if "/moe/" in name or re.search(r"/fan/|fan_tiny$", name)]
    assert sorted(ALL) == sorted(shipped)


@pytest.mark.parametrize("name", ALL)
def test_begins_with_what_it_is_and_how_to_run_it(name: str) -> None:
    title, *rest = comment(name)
    assert title.startswith(" ")
    assert re.search(r"\w[.,]?$", title)
    assert all(line.startswith(" ") for line in rest)
    assert load(name).name == name
    names = [one.name for one in trained(name)]
    assert name in names
    assert len(names) == len(set(names)), "would be written over another's results"
    assert re.search(r"min (a seed )?on one core" if name not in FULL else "not run here", prose(name))


@pytest.mark.parametrize("name", ALL)
def test_every_command_of_a_comment_trains_something(name: str) -> None:
    for recipe in trained(name):
        assert not option_faults_of(recipe.data)
        for mechanism in (recipe.attention, *recipe.attention.layers.values()):
            assert not check_options(mechanism.name, mechanism.options, ())
        assert parameters(recipe) > 0


@pytest.mark.parametrize("name", ALL)
def test_overrides_that_a_comment_names(name: str) -> None:
    """In its prose: each changes the recipe."""
    for override in re.findall(r"(?:attention|train|model)\.[\w.:]+=[\w.]+\w", prose(name)):
        assert load(name, override).model_dump() != load(name).model_dump()


@pytest.mark.parametrize("name", PRINTED)
def test_numbers_of_the_paper(name: str) -> None:
    with (PAPERS["rpc"].folder / "numbers.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for table, row, model in PRINTED[name]:
        found = [one["value"] for one in rows if (one["table"], one["row"], one["model"]) == (table, row, model)]
        assert len(found) == 2
        numbers = expected(name).values()
        assert all(
            float(value) in numbers or re.search(rf"(?<![\d.]){re.escape(value)}(?!\d)", prose(name)) for value in found
        )
        assert f"RPC-Attention paper, Table {table.removeprefix('table')}" in prose(name)


@pytest.mark.parametrize("name", FULL)
def test_full_size_names_a_small_sibling(name: str) -> None:
    (sibling,) = re.findall(r"Small sibling: ([\w/]+) \(two cores\)", prose(name))
    assert sibling in ALL
    small, full = load(sibling), load(name)
    assert [one.name for one in small.attention.per_layer(3)][:2] == mechanisms(name, 6)[:2]
    assert type(small.model) is type(full.model)
    assert re.search(rf"(Small sibling of|Full size:) {name}\.", prose(sibling)) or name in LANGUAGE
    assert parameters(small) < 1e6


@pytest.mark.parametrize(
    "names", [FAN, SMALL_FAN, LANGUAGE, SMALL_LANGUAGE, TUNED, SMALL_TUNED, BASE], ids=lambda names: names[0]
)
def test_what_is_compared_differs_in_attention_alone(names: list[str]) -> None:
    recipes = [load(name) for name in names]
    for section in ("model", "train", "data", "seeds"):
        assert all(getattr(one, section) == getattr(recipes[0], section) for one in recipes)
    assert len({one.attention.model_dump_json() for one in recipes}) == len(recipes)


def test_parameters_of_fan() -> None:
    """7.3 M; where attention is symmetric, without a projection of queries in each of 12 layers."""
    fan, symmetric, rpc = (parameters(load(name)) for name in FAN)
    assert fan / 1e6 == pytest.approx(7.3, rel=0.02)
    assert symmetric == rpc == fan - 12 * (192 * 192 + 192)
    for name, millions in zip(FAN, (fan, symmetric, rpc), strict=True):
        assert f" {millions / 1e6:.1f} M parameters" in prose(name)


def test_parameters_of_vit_base() -> None:
    """DeiT-base's 86.6 M without a projection of queries in each of 12 layers."""
    deit, symmetric, rpc = (parameters(load(name)) for name in ("imagenet/deit_base", *BASE))
    assert deit / 1e6 == pytest.approx(86.6, rel=0.001)
    assert symmetric == rpc == deit - 12 * (768 * 768 + 768)
    assert (deit - symmetric) / 1e6 == pytest.approx(7.1, rel=0.01)


def test_layers_of_the_paper() -> None:
    """E.6: 2 iterations in all layers; E.7: 4 iterations and λ = 4 in the first; E.8: 2 iterations in all."""
    assert mechanisms("imagenet/rpc_fan_tiny", 12) == ["rpc"] + ["symmetric"] * 11
    assert mechanisms("fashion_mnist/fan/rpc", 3) == ["rpc"] + ["symmetric"] * 2
    options = [load(name).attention.options for name in ("imagenet/rpc_fan_tiny", "fashion_mnist/fan/rpc", BASE[1])]
    assert [(one["iterations"], one["lambda"]) for one in options] == [(4, 4), (4, 4), (2, 3)]
    assert [one.get("convention", "paper") for one in options] == ["reference", "paper", "reference"]
    for name in (*TUNED, *SMALL_TUNED):
        recipe, rpc = load(name), "rpc_" in name
        assert set(mechanisms(name, 6)) == {"rpc" if rpc else name.rpartition("_" if "small" in name else "/")[2]}
        if rpc:
            assert (recipe.attention.options["iterations"], recipe.attention.options["lambda"]) == (2, 3)
            asymmetric = recipe.attention.options.get("asymmetric")
            assert asymmetric == ("iterate" if name.endswith("softmax") else None)


def test_training_of_fan() -> None:
    """300 epochs; the program's script, whose rate is DeiT's for a batch of 2,048."""
    for name in FAN:
        train = load(name).train
        assert (train.epochs, train.warmup_epochs, train.weight_decay, train.ema) == (300, 5, 0.05, 0.99992)
        assert train.lr == 5e-4 * train.batch_size / 512 == 2e-3
        assert (train.mixup, train.cutmix, train.erasing, train.label_smoothing) == (0.8, 1.0, 0.25, 0.1)
    usual = load("fashion_mnist/symmetric")
    for name in SMALL_FAN:
        assert (load(name).train, load(name).data, load(name).seeds) == (usual.train, usual.data, usual.seeds)


def test_parameters_of_mixtures_by_hand() -> None:
    """Words, places, blocks and the last norm; a mixture is so many MLPs and a router."""
    for name, vocabulary, width, depth, context, count in [
        ("language/moe/softmax", WORDS, 352, 6, 512, 16),
        ("language/moe/small_softmax", SMALL_VOCABULARY, 96, 3, 64, 8),
    ]:
        mixture = count * (2 * width * width + 2 * width) + count * width
        block = 4 * width * (width + 1) + mixture + 4 * width
        assert parameters(load(name)) == (vocabulary + context) * width + depth * block + 2 * width


def test_schedule_of_pretraining() -> None:
    for name in LANGUAGE:
        train = load(name).train
        windows, rest = divmod(WINDOWS, train.batch_size)
        steps = train.epochs * (windows + (rest >= train.accumulate))
        assert steps == pytest.approx(40_000, rel=0.005)
        assert f" {steps:,} steps" in prose(name)
        assert f" {WINDOWS:,} windows of 512 tokens" in prose(name)
        assert 4 * (train.batch_size // train.accumulate) * 512 * WORDS < 5e9, "logits of a part of a batch"


def test_small_ones_fit_two_cores() -> None:
    """Less than a thousand steps of fewer than 5,000 tokens, as the other small recipes."""
    for name in SMALL_LANGUAGE:
        recipe = load(name)
        assert recipe.train.batch_size * int(recipe.data.options["context"]) < 5000
    for name in SMALL_TUNED:
        recipe = load(name)
        assert recipe.train.epochs * 6920 / recipe.train.batch_size < 1000


@pytest.mark.parametrize("name", [*TUNED, *SMALL_TUNED])
def test_fine_tuning_begins_from_a_recipe_of_its_model(name: str) -> None:
    """All but the head comes from the language model, whose vocabulary is given with it."""
    source, *runs = trained(name)
    assert source.attention.name == ("softmax" if "softmax" in name else "symmetric")
    ours = [built(run).state_dict() for run in runs]
    theirs = built(source).state_dict()
    for run, state in zip(runs, ours, strict=True):
        assert run.init_from == run.data.options["vocabulary_from"] == f"results/{source.name}/0"
        found = match(state, theirs)
        assert {key for key, one in found.items() if one.value is None} == {
            "backbone.head.weight",
            "backbone.head.bias",
        }
        assert {origin for one in found.values() for origin in one.origins} == set(theirs)
        assert isinstance(run.model, Decoder | Encoder)
        assert isinstance(source.model, Decoder)
        assert run.model.experts == source.model.experts
