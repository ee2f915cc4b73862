"""The recipes of the papers' time series: their ten sets, their mechanisms, and the numbers of their tables."""

from __future__ import annotations

import re
from typing import get_args

import pytest
import torch
from recipe_comments import comment, expected, load, prose

from kattn_cli.attention.options import build_attention, check_options
from kattn_cli.data.sets.uea import SIZES, Uea, UeaSet
from kattn_cli.recipe.files import find_recipes, shipped_recipes
from kattn_cli.recipe.model import Encoder
from kattn_cli.recipe.options import option_faults
from kattn_cli.recipe.schema import Recipe

ALL = [name for name in shipped_recipes() if name.startswith("series/")]
VOWELS = "series/japanese_vowels"
PRIMAL = [name for name in ALL if name.endswith(("/primal", "/primal_plus"))]
OURS = ("softmax", "primal", "primal_plus")
"""The columns of Table 1 that every set has a recipe for."""

TABLE_1 = {
    "ethanol_concentration": (32.7, 33.1, 35.4),
    "face_detection": (67.3, 67.1, 63.8),
    "handwriting": (32.0, 29.6, 28.7),
    "heartbeat": (76.1, 76.1, 77.1),
    "japanese_vowels": (98.7, 98.4, 98.9),
    "pems_sf": (82.1, 89.6, 90.2),
    "self_regulation_scp1": (92.2, 92.5, 92.5),
    "self_regulation_scp2": (53.9, 57.2, 56.1),
    "spoken_arabic_digits": (98.4, 100, 100),
    "uwave_gesture_library": (85.6, 86.3, 88.4),
}
"""Primal-Attention paper, Table 1, those columns."""

BASELINES = {
    "linear": 99.2,
    "reformer": 97.8,
    "longformer": 98.9,
    "performer": 98.1,
    "yoso_e": 98.6,
    "cosformer": 98.3,
    "soft": 99.2,
    "flowformer": 98.9,
}
"""The others of its row of JapaneseVowels."""

MECHANISMS = (*OURS, *BASELINES, "tssa", "rpc", "symmetric")

STEPS = {
    "EthanolConcentration": 1751,
    "FaceDetection": 62,
    "Handwriting": 152,
    "Heartbeat": 405,
    "JapaneseVowels": 29,
    "PEMS-SF": 144,
    "SelfRegulationSCP1": 896,
    "SelfRegulationSCP2": 1152,
    "SpokenArabicDigits": 93,
    "UWaveGestureLibrary": 315,
}
"""Of the longest series; Table 2, which has 26 of JapaneseVowels' training series and 83 of the digits'."""

SHORT = {"FaceDetection", "Handwriting", "JapaneseVowels", "PEMS-SF", "SpokenArabicDigits"}
"""Those with rank_multi 5 (B.1)."""


def set_of(recipe: Recipe) -> str:
    return str(recipe.data.options["set"])


def test_all_are_here() -> None:
    names = {f"{VOWELS}/{mechanism}" for mechanism in MECHANISMS}
    assert set(ALL) == names | {f"series/{folder}/{name}" for folder in TABLE_1 for name in OURS}
    sets = {set_of(load(name)) for name in ALL}
    assert sets == set(STEPS) == set(SIZES) - {"BasicMotions"}
    assert sets < set(get_args(UeaSet))


@pytest.mark.parametrize("name", ALL)
def test_begins_with_what_it_is_and_the_paper_s_number(name: str) -> None:
    text, recipe = prose(name), load(name)
    (source,) = find_recipes(name)
    assert recipe.name == name
    assert source.path.read_text(encoding="utf-8").startswith(f"# Time series of {set_of(recipe)}, ")
    assert comment(name)[1] == f"   kattn train {name}"
    train, test = SIZES[set_of(recipe)]
    assert f" {train:,} training and {test:,} test series of " in text
    _, folder, mechanism = name.split("/")
    trans, primal, plus = TABLE_1[folder]
    numbers = dict(zip(OURS, TABLE_1[folder], strict=True)) | BASELINES
    if mechanism in numbers:
        assert expected(name) == {"top-1": numbers[mechanism]}
        assert "those of Primal-Attention paper, Table 1." in text
    else:
        assert f"Table 1: Trans. {trans} %, Primal. {primal} %, Primal.+ {plus} %." in text
    assert name.startswith(VOWELS) or f"Small sibling: {VOWELS}/{mechanism}." in text


@pytest.mark.parametrize("name", ALL)
def test_can_be_trained(name: str) -> None:
    """Options that exist, and mechanisms that can be built for the longest series."""
    recipe = load(name)
    assert isinstance(recipe.model, Encoder)
    assert not option_faults(Uea, recipe.data.options, ())
    for mechanism in recipe.attention.per_layer(recipe.model.depth):
        assert not check_options(mechanism.name, mechanism.options, ())
        with torch.device("meta"):
            build_attention(mechanism.name, mechanism.options, dim=512, heads=8, seq_len=STEPS[set_of(recipe)])


@pytest.mark.parametrize("folder", TABLE_1)
def test_a_folder_s_recipes_differ_in_attention_alone(folder: str) -> None:
    recipes = [load(name) for name in ALL if name.startswith(f"series/{folder}/")]
    for section in ("model", "train", "data", "seeds"):
        assert all(getattr(one, section) == getattr(recipes[0], section) for one in recipes)
    assert len({one.attention.model_dump_json() for one in recipes}) == len(recipes)


def test_the_papers_encoder_for_all() -> None:
    """Two layers of 512, 8 heads of 64."""
    (model,) = {load(name).model.model_dump_json() for name in ALL}
    expected = Encoder(dim=512, depth=2, heads=8, mlp_ratio=4.0, position="learned", dropout=0.1)
    assert model == expected.model_dump_json()


def test_the_authors_training_but_of_the_set_for_two_cores() -> None:
    """Their program: batches of 16, 100 epochs, of PEMS-SF 400."""
    others = [load(name) for name in ALL if not name.startswith(VOWELS)]
    for recipe in others:
        assert recipe.train.epochs == (400 if set_of(recipe) == "PEMS-SF" else 100)
    assert len({one.train.model_copy(update={"epochs": 1}).model_dump_json() for one in others}) == 1
    assert (others[0].train.batch_size, others[0].train.lr, others[0].train.clip_grad) == (16, 1e-3, 4.0)
    assert load(f"{VOWELS}/softmax").seeds == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("name", PRIMAL)
def test_primal_in_all_layers_or_in_the_last(name: str) -> None:
    recipe = load(name)
    first, last = recipe.attention.per_layer(2)
    assert last.name == "primal"
    assert first.name == ("softmax" if name.endswith("_plus") else "primal")
    assert last.options["rank_multi"] == (5 if set_of(recipe) in SHORT else 10)
    assert (last.options["convention"], last.options["square"]) == ("reference", "sample")


TABLE_9 = {
    "ethanol_concentration": (30, 0.1),
    "face_detection": (20, 0.1),
    "handwriting": (30, 0.2),
    "heartbeat": (30, 0.5),
    "japanese_vowels": (40, 0.5),
    "pems_sf": (40, 0.1),
    "self_regulation_scp1": (30, 0.5),
    "self_regulation_scp2": (20, 0.0),
    "spoken_arabic_digits": (20, 0.1),
    "uwave_gesture_library": (20, 0.0),
}
"""The best s and η of Primal-Attention paper, Table 9; of equals, the one that the authors' program has."""


@pytest.mark.parametrize("folder", TABLE_9)
def test_best_cell_of_table_9(folder: str) -> None:
    options = load(f"series/{folder}/primal").attention.options
    assert (options["s"], options["eta"]) == TABLE_9[folder]


@pytest.mark.parametrize("name", PRIMAL)
def test_the_grid_that_a_comment_writes_out(name: str) -> None:
    """The shell's loops, with both variables put in: 12 recipes under names of their own."""
    text = re.sub(r" \\\n +", " ", "\n".join(comment(name)))
    found = re.search(r"for s in ([\d ]+); do for eta in ([\d. ]+); do kattn train (\S+) (.+); done; done", text)
    assert found
    sizes, etas, recipe, overrides = found.groups()
    assert (sizes.split(), etas.split(), recipe) == (["20", "30", "40"], ["0.0", "0.1", "0.2", "0.5"], name)
    runs = [
        load(name, *overrides.replace("${s}", s).replace("$s", s).replace("$eta", eta).split())
        for s in sizes.split()
        for eta in etas.split()
    ]
    assert len({one.name for one in runs}) == 12
    primal = [one.attention.per_layer(2)[-1].options for one in runs]
    cells = {(options["s"], options["eta"]) for options in primal}
    assert cells == {(s, eta) for s in (20, 30, 40) for eta in (0.0, 0.1, 0.2, 0.5)}


@pytest.mark.parametrize("folder", [folder for folder in TABLE_1 if folder != "japanese_vowels"])
def test_baselines_of_the_other_sets_are_overrides(folder: str) -> None:
    name = f"series/{folder}/softmax"
    joined = re.sub(r" \\\n +", " ", "\n".join(comment(name)))
    lines = [line.split()[3:] for line in joined.splitlines() if line.startswith("   kattn train ")]
    assert len(lines) == 3
    loaded = [load(name, *overrides) for overrides in lines]
    assert [one.attention.name for one in loaded] == ["softmax", "flowformer", "linear"]
    assert len({one.name for one in loaded}) == 3
