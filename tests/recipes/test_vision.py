"""The recipes of the papers' vision experiments: all can be run as their comments say, at the papers' sizes."""

from __future__ import annotations

import re
import shlex

import pytest
import torch
from recipe_comments import comment, load

from kattn_cli.attention.options import check_options
from kattn_cli.models import build_model
from kattn_cli.recipe.data import ImageSection
from kattn_cli.recipe.files import shipped_recipes
from kattn_cli.recipe.model import DecisionTransformer, Decoder, Encoder, OtherModel, Segmenter
from kattn_cli.recipe.schema import Recipe

FOLDERS = ("imagenet", "imagenet100", "finetune", "cifar10", "fashion_mnist")
ALL = [
    name
    for name in shipped_recipes()
    if name.startswith(tuple(f"{folder}/" for folder in FOLDERS)) and "/fan/" not in name and "fan_tiny" not in name
]
TEN = ("softmax", "symmetric", "rpc", "rpc_all", "scaled", "primal", "primal_plus", "tssa", "xca", "mssa")
RPC = ("rpc_5", "rpc_6", "rpc_reference", "rpc_all_reference")
"""RPC-Attention's other numbers of iterations and convention, on Fashion-MNIST."""

SMALL = {
    *(f"{folder}/{name}" for folder in ("cifar10", "fashion_mnist") for name in TEN),
    *(f"fashion_mnist/{name}" for name in RPC),
    *(f"cifar10/ablation_small_{name}" for name in ("mlp", "ista", "no_norm_mlp", "no_norm_ista")),
    "finetune/mnist",
}
FULL = [name for name in ALL if name not in SMALL and "/trained/" not in name]
"""All but the small ones and the arms of the studies, which no paper has."""

SHAPES = {"mnist": (28, 1), "fashion_mnist": (28, 1), "cifar10": (32, 3)}
"""Pixels and channels of what is read at its own size; all else is read at 224 pixels in colour."""

MEBI = 2**20 / 1e6
MILLIONS = {
    **dict.fromkeys(("imagenet/symvit_tiny", "imagenet/rpc_symvit_tiny", "imagenet/rpc_all_symvit_tiny"), 5.2),
    "imagenet/deit_small": 22.1,
    "imagenet/deit_base": 86.6,
    "imagenet/tost_tiny": 5.8,
    "imagenet/tost_small": 22.6,
    "imagenet/tost_medium": 68.1 * MEBI,
    "imagenet/xcit_small": 24.9 * MEBI,
    "imagenet/xcit_medium": 80.2 * MEBI,
}
"""Parameters that the papers print: RPC-Attention, Table 13; ToST, Table 5, whose last three are in 2²⁰."""


def commands(name: str) -> list[tuple[str, list[str]]]:
    """What the comment says to type after ``kattn train``: a recipe, and its overrides."""
    joined = re.sub(r" \\\n +", " ", "\n".join(comment(name)))
    words = [shlex.split(line)[2:] for line in joined.splitlines() if line.startswith("   kattn train ")]
    return [(recipe, [word for word in rest if "=" in word]) for recipe, *rest in words]


COUNTED: dict[str, int] = {}


def parameters(recipe: Recipe) -> int:
    """Of the recipe's model with its attention, for 1,000 classes; each is built once, without memory for it."""
    pixels, channels = SHAPES.get(recipe.data.name, (224, 3))
    assert isinstance(recipe.data, ImageSection)
    size = recipe.data.image_size or pixels
    model = recipe.model.model_copy(update={"drop_path": 0.0})
    assert not isinstance(model, Encoder | Decoder | Segmenter | DecisionTransformer | OtherModel)
    key = f"{model!r} {recipe.attention!r} {size} {channels}"
    if key not in COUNTED:
        sizes = {"image_size": size, "channels": channels, "classes": 1000}
        with torch.device("meta"):
            built = build_model(model, recipe.attention, **sizes, mean=[0.5] * channels, std=[0.25] * channels)
        COUNTED[key] = sum(parameter.numel() for parameter in built.parameters())
    return COUNTED[key]


def test_all_are_here() -> None:
    assert set(ALL) >= SMALL
    assert {name.partition("/")[0] for name in ALL} == set(FOLDERS)
    assert all(any(name.startswith(f"{folder}/") for name in FULL) for folder in FOLDERS if folder != "fashion_mnist")


@pytest.mark.parametrize("name", ALL)
def test_begins_with_what_it_is_and_how_to_run_it(name: str) -> None:
    title, *rest = comment(name)
    assert title.startswith(" ")
    assert title.endswith(".")
    assert all(line.startswith(" ") for line in rest)
    assert (name, []) in commands(name)
    assert load(name).name == name


@pytest.mark.parametrize("name", ALL)
def test_every_command_of_a_comment_trains_a_model_of_its_own(name: str) -> None:
    names = set()
    for recipe, overrides in commands(name):
        loaded = load(recipe, *overrides)
        for mechanism in (loaded.attention, *loaded.attention.layers.values()):
            assert not check_options(mechanism.name, mechanism.options, ())
        assert parameters(loaded) > 0
        assert loaded.name not in names, "would be written over another's results"
        names.add(loaded.name)


@pytest.mark.parametrize("name", MILLIONS)
def test_parameters_of_the_papers(name: str) -> None:
    """Of every row that its commands train."""
    for recipe, overrides in commands(name):
        assert parameters(load(recipe, *overrides)) / 1e6 == pytest.approx(MILLIONS[name], rel=0.02)


@pytest.mark.parametrize("name", FULL)
def test_full_size_names_a_small_sibling_and_what_is_whose(name: str) -> None:
    text = " ".join(line.strip() for line in comment(name))
    assert "not run here" in text
    assert re.search(r" paper, (Table \d|E\.1)", text)
    named = text.partition("Small sibling: ")[2].partition(". ")[0]
    siblings = re.findall(r"\b(?:cifar10|fashion_mnist|finetune)/\w+", named.partition(" changed to:")[0])
    assert siblings
    assert set(siblings) <= SMALL


@pytest.mark.parametrize(("folder", "names"), [("cifar10", TEN), ("fashion_mnist", (*TEN, *RPC))])
def test_a_folder_s_recipes_differ_in_attention_alone(folder: str, names: tuple[str, ...]) -> None:
    recipes = [load(f"{folder}/{name}") for name in names]
    for section in ("model", "train", "data", "seeds"):
        assert [getattr(one, section) for one in recipes] == [getattr(recipes[0], section)] * len(names)
    assert len({one.attention.model_dump_json() for one in recipes}) == len(names)


@pytest.mark.parametrize("size", ["", "small_"])
def test_ablation_varies_normalisation_and_block(size: str) -> None:
    """ToST paper, Table 8."""
    recipes = {
        (norm, block): load(f"cifar10/ablation_{size}{'' if norm else 'no_norm_'}{block}")
        for norm in (True, False)
        for block in ("mlp", "ista")
    }
    first = recipes[True, "mlp"]
    for (norm, block), one in recipes.items():
        assert one.attention.options == {"normalize": norm}
        assert one.model == first.model.model_copy(update={"feed_forward": block})
        assert (one.data, one.train, one.seeds) == (first.data, first.train, first.seeds)


@pytest.mark.parametrize("name", [name for name in ALL if name.startswith("finetune/")])
def test_fine_tuning_begins_from_a_shipped_recipe_of_its_model(name: str) -> None:
    runs = [load(name, *overrides) for recipe, overrides in commands(name) if recipe == name]
    begun = [one for one in runs if one.init_from]
    assert len(begun) == (1 if name == "finetune/mnist" else 7)
    for one in begun:
        source = str(one.init_from).removeprefix("results/").removesuffix("/0")
        pretrained = load(source)
        assert one.init_from == f"results/{pretrained.name}/{pretrained.seed}"
        assert one.model == pretrained.model.model_copy(update={"drop_path": 0.0})
        assert one.attention == pretrained.attention


@pytest.mark.parametrize("name", ["imagenet/deit_small", "imagenet/primal_plus_deit_small", "imagenet/vit_tiny"])
def test_protocol_of_deit(name: str) -> None:
    """Touvron et al. 2021, Table 9: lr 5e-4 · batch / 512, and so on."""
    train = load(name).train
    assert train.lr == 5e-4 * train.batch_size / 512
    assert (train.epochs, train.warmup_epochs, train.weight_decay) == (300, 5, 0.05)
    assert (train.label_smoothing, train.mixup, train.cutmix, train.erasing, train.repeats) == (0.1, 0.8, 1, 0.25, 3)


def test_one_protocol_for_all_models_of_a_paper() -> None:
    deit, xcit = load("imagenet/vit_tiny").train, load("imagenet/tost_tiny").train
    for name in (name for name in FULL if name.startswith("imagenet")):
        assert load(name).train == (xcit if re.search("/(tost|xcit)_", name) else deit)
    assert xcit == deit.model_copy(update={"epochs": 400, "batch_size": 2048, "lr": 2e-4})


def test_primal_plus_replaces_one_layer() -> None:
    """No value projection there (384² + 384); W_e, W_r of all 197 tokens, Λ, and W_c instead."""
    s, heads, tokens, dim = 96, 6, 197, 384
    added = heads * s * (2 * tokens + 1) + (2 * s + 1) * dim // heads
    softmax, primal = (parameters(load(f"imagenet/{name}deit_small")) for name in ("", "primal_plus_"))
    assert primal - softmax == added - (dim + 1) * dim


@pytest.mark.parametrize(
    ("name", "first", "between", "last"),
    [
        ("imagenet/rpc_symvit_tiny", "rpc", "symmetric", "symmetric"),
        ("imagenet/rpc_asymvit_tiny", "rpc", "softmax", "softmax"),
        ("imagenet/rpc_sym_asym_vit_tiny", "rpc", "softmax", "softmax"),
        ("imagenet/rpc_all_symvit_tiny", "rpc", "rpc", "rpc"),
        ("imagenet/rpc_all_symvit_base", "rpc", "rpc", "rpc"),
        ("imagenet/primal_plus_deit_small", "softmax", "softmax", "primal"),
        ("imagenet100/primal_plus_deit_small", "softmax", "softmax", "primal"),
    ],
)
def test_layers_of_the_papers(name: str, first: str, between: str, last: str) -> None:
    """RPC-Attention, §4.1, E.6, E.10 and λ of Appendix A; Primal-Attention, B.1 and Table 13. As their programs ran."""
    chosen = [load(recipe, *overrides).attention for recipe, overrides in commands(name) if recipe == name]
    for attention in chosen:
        layers = attention.per_layer(12)
        assert [one.name for one in layers] == [first, *[between] * 10, last]
        own = [one.options for one in layers if one.name in ("rpc", "primal")]
        assert all(options["convention"] == "reference" for options in own)
        if first == "rpc":
            assert all(options["lambda"] == (3 if between == "rpc" else 4) for options in own)
    if name == "imagenet/rpc_symvit_tiny":
        assert [one.options["iterations"] for one in chosen] == [4, 5, 6]
    if last == "primal":
        assert [one.layers[-1].options["s"] for one in chosen] == [96, 64, 32]
