"""Recipes: what is read, and the text of every fault."""

from __future__ import annotations

import contextlib
import time
from itertools import pairwise
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kattn_cli.errors import RecipeError
from kattn_cli.experiment.recipes import load, load_sweep
from kattn_cli.recipe.files import find_recipes, recipes_folder, shipped_recipes
from kattn_cli.recipe.load import load_recipe, read_notes
from kattn_cli.recipe.model import PRESETS, TimmModel, Tost, Vit
from kattn_cli.recipe.schema import Attention, Mechanism
from kattn_cli.tasks import kinds

SOUND = """\
name: sound
seed: 3
model: {name: vit, depth: 4, dim: 32}
attention: {name: softmax, layers: {0: {name: rpc, lambda: 3}, -1: primal}}
train: {lr: 3e-4, epochs: 5}
"""

MALFORMED: dict[str, tuple[str, str]] = {
    "empty": ("", "is empty"),
    "only a comment": ("# nothing\n", "is empty"),
    "a list": ("- name: x\n", "expected a mapping of keys (name, attention, …), not a list"),
    "a single value": ("softmax\n", "not a single value"),
    "not yaml": ("name: x\nattention: {name: softmax\n", "line 3  is not YAML"),
    "tab": ("name: x\nattention:\n\tname: softmax\n", "line 3  is not YAML: found character '\\t'"),
    "unknown section": (
        "name: x\nattention: softmax\nmodell: {}\n",
        'line 3  modell  unknown key; did you mean "model"?',
    ),
    "unknown key": (
        "name: x\nattention: softmax\nmodel:\n  depht: 3\n",
        'line 4  model.depht  unknown key; did you mean "depth"?',
    ),
    "no name": ("attention: softmax\n", "name  is missing"),
    "no attention": ("name: x\n", "attention  is missing"),
    "no mechanism": ("name: x\nattention: {layers: {}}\n", "line 2  attention.name  is missing"),
    "duplicate key": (
        "name: x\nattention: softmax\ntrain:\n  lr: 1e-3\n  lr: 2e-3\n",
        "line 5  train.lr  is given twice, first on line 4",
    ),
    "not a number": (
        "name: x\nattention: softmax\ntrain: {lr: 3e-4x}\n",
        'train.lr  expected a number, not "3e-4x"',
    ),
    "boolean for a number": (
        "name: x\nattention: softmax\ntrain: {lr: true}\n",
        "train.lr  expected a number, not true",
    ),
    "boolean for a whole number": (
        "name: x\nattention: softmax\nseed: true\n",
        "seed  expected a whole number, not true",
    ),
    "fraction for a whole number": (
        "name: x\nattention: softmax\ntrain: {epochs: 2.5}\n",
        "train.epochs  expected a whole number, not 2.5",
    ),
    "quoted number": (
        'name: x\nattention: softmax\ntrain: {epochs: "2"}\n',
        'expected a whole number, not "2"',
    ),
    "number for a word": ("name: 7\nattention: softmax\n", "name  expected text, not 7"),
    "nothing given": (
        "name: x\nattention: softmax\ntrain: {lr:}\n",
        "train.lr  expected a number, not nothing",
    ),
    "too small": (
        "name: x\nattention: softmax\ntrain: {epochs: 0}\n",
        "train.epochs  must be at least 1, not 0",
    ),
    "too large": ("name: x\nattention: softmax\ntrain: {lr: 100}\n", "train.lr  must be at most 10, not 100"),
    "negative": ("name: x\nattention: softmax\nseed: -1\n", "seed  must be at least 0, not -1"),
    "infinite": (
        "name: x\nattention: softmax\ntrain: {lr: .inf}\n",
        "train.lr  must be a finite number, not inf",
    ),
    "not one of": (
        "name: x\nattention: softmax\nmodel: {pool: avgg}\n",
        'model.pool  expected one of token, avg, not "avgg"; did you mean "avg"?',
    ),
    "list for a mapping": (
        "name: x\nattention: softmax\ntrain: [1]\n",
        "train  expected a mapping of keys, not a list",
    ),
    "unknown mechanism": (
        "name: x\nattention: sofmax\n",
        ', or file.py:Class; did you mean "softmax"?',
    ),
    "unknown option": (
        "name: x\nattention: {name: rpc, iteration: 4}\n",
        'attention.iteration  unknown key; did you mean "iterations"?',
    ),
    "option of another type": (
        "name: x\nattention: {name: rpc, lambda: big}\n",
        'attention.lambda  expected a number, not "big"',
    ),
    "unknown convention": (
        "name: x\nattention: {name: rpc, convention: papers}\n",
        'expected one of paper, reference, textbook, not "papers"; did you mean "paper"?',
    ),
    "layer that is not there": (
        "name: x\nmodel: {depth: 12}\nattention:\n  name: softmax\n  layers:\n    12: rpc\n",
        "line 6  attention.layers.12  the model has 12 layers: 0 … 11, or -12 … -1",
    ),
    "layer named twice": (
        "name: x\nmodel: {depth: 2}\nattention: {name: softmax, layers: {1: rpc, -1: tssa}}\n",
        "attention.layers.-1  names layer 1, which 1 names already",
    ),
    "layer that is no index": (
        "name: x\nattention: {name: softmax, layers: {last: rpc}}\n",
        'attention.layers.last  expected a layer index such as 0 or -1, or a slice such as "1:"',
    ),
    "option in a layer": (
        "name: x\nattention: {name: softmax, layers: {0: {name: tssa, normalise: true}}}\n",
        'attention.layers.0.normalise  unknown key; did you mean "normalize"?',
    ),
    "heads": (
        "name: x\nattention: softmax\nmodel: {dim: 48, heads: 5}\n",
        "model.heads  must divide model.dim = 48, and 5",
    ),
    "patch": (
        "name: x\nattention: softmax\nmodel: {patch_size: 3}\n",
        "model.patch_size  must divide the image size, 8,",
    ),
    "warm-up": (
        "name: x\nattention: softmax\ntrain: {epochs: 3, warmup_epochs: 3}\n",
        "train.warmup_epochs  must be less than train.epochs = 3",
    ),
    "unknown data": (
        "name: x\nattention: softmax\ndata: {name: digit}\n",
        'not "digit"; did you mean "digits"?',
    ),
    "unknown model": (
        "name: x\nattention: softmax\nmodel: {name: deit_tiny_patch16_244}\n",
        'did you mean "deit_tiny_patch16_224"?',
    ),
    "not a transformer": (
        "name: x\nattention: softmax\nmodel: {name: resnet18}\n",
        "model.name  resnet18 is a ResNet, not a vision transformer",
    ),
    "image too small for the patch": (
        "name: x\nattention: softmax\nmodel: {name: deit_tiny_patch16_224}\n",
        "data.image_size  must be a multiple of 16, the patch size of deit_tiny_patch16_224 (224, say), and 8 is not",
    ),
    "timm's depth": (
        "name: x\ndata: {image_size: 224}\nmodel: {name: deit_tiny_patch16_224}\n"
        "attention: {name: softmax, layers: {12: rpc}}\n",
        "attention.layers.12  the model has 12 layers",
    ),
    "unknown preset": (
        "name: x\nattention: tssa\nmodel: {name: tost_smal}\n",
        "model.name  expected vit, tost, xcit, fan, segmenter, encoder, decoder, decision_transformer, one of their "
        "presets or one of timm's vision transformers, "
        'not "tost_smal"; did you mean "tost_small"?',
    ),
    "unknown key beside a preset": (
        "name: x\nattention: tssa\nmodel: {name: tost_small, depht: 3}\n",
        'model.depht  unknown key; did you mean "depth"?',
    ),
    "key of another model": ("name: x\nattention: tssa\nmodel: {name: xcit, pool: avg}\n", "model.pool  unknown key"),
    "patch that is no power of two": (
        "name: x\nattention: tssa\nmodel: {name: tost, patch_size: 3}\n",
        "model.patch_size  expected one of 2, 4, 8, 16, 32, not 3",
    ),
    "width that cannot be halved": (
        "name: x\nattention: tssa\ndata: {image_size: 32}\nmodel: {name: tost, patch_size: 16, dim: 36}\n",
        "model.dim  must be a multiple of 8 for patch_size 16, whose first convolution has dim / 8 channels, and 36",
    ),
    "patch of a preset": (
        "name: x\nattention: tssa\nmodel:\n  name: tost_tiny\n",
        "line 3  model.patch_size  must divide the image size, 8, and 16 does not",
    ),
    "heads of a preset": (
        "name: x\nattention: mssa\ndata: {image_size: 224}\nmodel:\n  name: crate_tiny\n  dim: 388\n",
        "line 4  model.heads  must divide model.dim = 388, and 6 does not",
    ),
    "causal with a class token": (
        "name: x\nattention: softmax\nmodel: {causal: true, pool: token}\n",
        "model.pool  must be avg for causal: true, since the class token comes first",
    ),
    "causal without that form": (
        "name: x\nattention: xca\nmodel: {causal: true}\n",
        "attention.name  xca has no causal form, as model.causal asks; these have: softmax, symmetric,",
    ),
    "causal without that form in a layer": (
        "name: x\nattention: {name: softmax, layers: {-1: class_attention}}\nmodel: {causal: true}\n",
        "attention.layers.-1  class_attention has no causal form, as model.causal asks; these have: softmax,",
    ),
    "options that do not go together": (
        "name: x\nattention: {name: softmax, layers: {1: primal}}\nmodel: {causal: true}\n",
        "attention.layers.1  the causal form needs projection: data-independent, since f(X) samples the future",
    ),
    "weights that are not there": (
        "name: x\nattention: softmax\ndata: {image_size: 32}\nmodel: {name: test_vit, weights: nowhere.pth}\n",
        f"model.weights  there is no file {Path.cwd() / 'nowhere.pth'}",
    ),
    "weights of another kind": (
        "name: x\nattention: softmax\ndata: {image_size: 32}\nmodel: {name: test_vit, weights: w.npz}\n",
        'model.weights  expected timm, or a file that ends in .safetensors, .pth, .pt, not "w.npz"',
    ),
    "weights that timm does not have": (
        "name: x\nattention: softmax\ndata: {image_size: 32}\nmodel: {name: test_vit4, weights: timm}\n",
        "model.weights  timm has no weights for test_vit4",
    ),
    "weights for a model of one's own": (
        "name: x\nattention: softmax\nmodel: {weights: timm}\n",
        "model.weights  unknown key",
    ),
    "option of the class-attention blocks": (
        "name: x\nattention: tssa\nmodel: {name: tost, tokens_nrm: false}\n",
        'line 3  model.tokens_nrm  unknown key; did you mean "tokens_norm"?',
    ),
    "option of a decoder": (
        "name: x\nattention: softmax\nmodel: {name: decoder, layer_scale: 0, norm_esp: 1e-5}\n",
        "line 3  model.layer_scale  must be greater than 0, not 0\nline 3  model.norm_esp  unknown key; "
        'did you mean "norm_eps"?',
    ),
    "norm of no size": (
        "name: x\nattention: softmax\nmodel: {name: decoder, norm_eps: 0}\n",
        "line 3  model.norm_eps  must be greater than 0, not 0",
    ),
    "feature map that there is not": (
        "name: x\nattention: {name: linear, feature_map: cosin}\n",
        'attention.feature_map  expected one of elu, cosine, not "cosin"; did you mean "cosine"?',
    ),
    "misspelt standardise": (
        "name: x\nattention: {name: softmax, standardize: true}\n",
        'attention.standardize  unknown key; did you mean "standardise"?',
    ),
    "repeated rows that are a number": (
        "name: x\nattention: {name: primal, repeat_rows: 3}\n",
        "attention.repeat_rows  expected true or false, not 3",
    ),
    "repeated rows that are not sampled": (
        "name: x\nattention: {name: primal, projection: data-independent, repeat_rows: true}\n",
        "attention  repeat_rows needs projection: data-dependent; the other samples no rows",
    ),
    "feature map without its normaliser": (
        "name: x\nattention: {name: linear, feature_map: cosine}\n",
        "attention  feature_map: cosine needs convention: reference, since cosines can be negative and add up to 0",
    ),
    "name that leaves the folder": (
        "name: ../x\nattention: softmax\n",
        'name  expected letters, digits and . _ + - with / between parts, not "../x"',
    ),
    "anchor": (
        "name: x\nattention: &a {name: softmax, layers: {0: *a}}\n",
        "anchors and aliases are not used in recipes",
    ),
    "tag": ("name: !!binary aGk=\nattention: softmax\n", "the tag tag:yaml.org,2002:binary is not used"),
    "key that is a list": (
        "? [a]\n: 1\nname: x\nattention: softmax\n",
        "a key must be a plain word or number",
    ),
    "no such file of one's own": (
        "name: x\nattention: nowhere.py:Mine\n",
        "attention.name  there is no file",
    ),
}


NESTED = {
    "lists": "[" * 40 + "]" * 40,
    "many lists": "[" * 5000 + "]" * 5000,
    "mappings": "{a: " * 40 + "1" + "}" * 40,
    "many mappings": "{a: " * 5000 + "1" + "}" * 5000,
    "lines": "\n" + "\n".join(" " * depth + f"k{depth}:" for depth in range(1, 300)),
}


def written(folder: Path, text: str) -> Path:
    path = folder / "r.yaml"
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", NESTED)
def test_deep_nesting_is_one_fault(case: str, tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match=r"is nested (too deeply|more than 32 levels deep)$") as error:
        load(written(tmp_path, f"name: x\nattention: softmax\nunknown: 1\ndeep: {NESTED[case]}\n"))
    assert len(str(error.value).splitlines()) == 2, str(error.value)
    assert max(map(len, str(error.value).splitlines())) < 200


def test_aliases_that_stand_for_billions_are_one_fault(tmp_path: Path) -> None:
    lists = [f"{letter}: &{letter} [{', '.join(['*' + before] * 9)}]" for before, letter in pairwise("abcdefghijkl")]
    with pytest.raises(RecipeError) as error:
        load(written(tmp_path, "\n".join(["name: x", "a: &a [1, 1, 1]", *lists])))
    assert str(error.value).splitlines()[0].endswith(": 1 fault, nothing was started")
    assert squeeze(str(error.value)).splitlines()[1:] == [
        "line 3  b.0  anchors and aliases are not used in recipes; write it out"
    ]


def test_a_file_too_large_for_a_recipe_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    begun = time.perf_counter()
    with pytest.raises(RecipeError, match=r"^\S+: is no recipe: it is larger than 256 KiB$"):
        load(written(tmp_path, "name: x\n" + "key: 1\n" * 50_000))
    assert time.perf_counter() - begun < 1


def test_of_thousands_of_faults_the_first_are_shown(tmp_path: Path) -> None:
    keys = "".join(f"k{number}: 1\n" for number in range(1000))
    with pytest.raises(RecipeError, match=r": 1,000 faults, nothing was started\n") as error:
        load(written(tmp_path, f"name: x\nattention: softmax\n{keys}"))
    lines = str(error.value).splitlines()
    assert len(lines) == 52
    assert squeeze(lines[1]).startswith("line 3  k0  unknown key")
    assert lines[-1] == "  … and 950 more"


def squeeze(text: str) -> str:
    """Columns padded to align, narrowed to two spaces again."""
    return "\n".join("  ".join(cell.strip() for cell in line.split("  ") if cell.strip()) for line in text.splitlines())


@pytest.mark.parametrize("case", MALFORMED)
def test_malformed(case: str, tmp_path: Path) -> None:
    text, expected = MALFORMED[case]
    path = tmp_path / "bad.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        load(path)
    message = squeeze(str(caught.value))
    assert message.startswith(str(path))
    assert expected in message
    assert list(tmp_path.iterdir()) == [path]


def test_every_fault_stands_in_one_message(tmp_path: Path) -> None:
    path = tmp_path / "my.yaml"
    path.write_text(
        "name: my\nmodel:\n  depht: 12\nattention:\n  name: rpc\n  lamda: 4\ndata: {name: digits}\n"
        "train:\n  lr: 3e-4x\n  epochs: 0\n",
        encoding="utf-8",
    )
    with pytest.raises(RecipeError) as caught:
        load(path, ["train.batch_size=many"])
    assert str(caught.value).splitlines() == [
        f"{path}: 5 faults, nothing was started",
        '  line 3        model.depht       unknown key; did you mean "depth"?',
        '  line 6        attention.lamda   unknown key; did you mean "lambda"?',
        '  line 9        train.lr          expected a number, not "3e-4x"',
        "  line 10       train.epochs      must be at least 1, not 0",
        '  command line  train.batch_size  expected a whole number, not "many"',
    ]


def test_sound(tmp_path: Path) -> None:
    path = tmp_path / "sound.yaml"
    path.write_text(SOUND, encoding="utf-8")
    recipe = load(path, ["train.epochs=7", "attention.layers.0.iterations=6", "data.image_size=16"])
    assert recipe.train.lr == 3e-4
    assert recipe.train.epochs == 7
    assert recipe.data.model_dump()["image_size"] == 16
    rpc = recipe.attention.layers[0]
    assert rpc.options == {
        "iterations": 6,
        "lambda": 3.0,
        "convention": "paper",
        "asymmetric": "none",
        "qkv_bias": True,
        "attn_drop": 0.0,
    }
    assert [one.name for one in recipe.attention.per_layer(4)] == ["rpc", "softmax", "softmax", "primal"]


def test_resolved_recipe_reads_back_the_same(tmp_path: Path) -> None:
    path, again = tmp_path / "sound.yaml", tmp_path / "again.yaml"
    path.write_text(SOUND, encoding="utf-8")
    recipe = load(path)
    again.write_text(recipe.to_yaml(), encoding="utf-8")
    assert load(again) == recipe


@pytest.mark.parametrize(
    ("attention", "expected"),
    [
        (Attention(name="symmetric", layers={0: Mechanism(name="rpc")}), ["rpc", "symmetric", "symmetric"]),
        (Attention(name="rpc"), ["rpc"] * 3),
        (Attention(name="primal"), ["primal"] * 3),
        (Attention(name="softmax", layers={-1: Mechanism(name="primal")}), ["softmax", "softmax", "primal"]),
        (
            Attention(name="symmetric", layers={"1:": Mechanism(name="softmax")}),
            ["symmetric", "softmax", "softmax"],
        ),
        (Attention(name="softmax", layers={":-1": Mechanism(name="tssa")}), ["tssa", "tssa", "softmax"]),
    ],
)
def test_layers(attention: Attention, expected: list[str]) -> None:
    assert [one.name for one in attention.per_layer(3)] == expected


@pytest.mark.parametrize(
    ("override", "expected"),
    [
        ("train.epochs", "train.epochs  expected key=value, for example train.epochs=5"),
        ("=5", "expected key=value"),
        ("train.lr={", "command line  train.lr  is not YAML"),
        ("name.first=x", "command line  name  holds a value, not keys of its own"),
        ("trian.lr=1", 'command line  trian  unknown key; did you mean "train"?'),
        ("attention.layers.9=rpc", "command line  attention.layers.9  the model has 4 layers"),
    ],
)
def test_overrides_that_do_not_fit(override: str, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "sound.yaml"
    path.write_text(SOUND, encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        load(path, [override])
    assert expected in squeeze(str(caught.value))


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="there is no such file"):
        load(tmp_path / "none.yaml")
    with pytest.raises(RecipeError, match="cannot be read: Is a directory"):
        load(tmp_path)
    binary = tmp_path / "binary.yaml"
    binary.write_bytes(b"name: \xff\xfe")
    with pytest.raises(RecipeError, match="is not a text file in UTF-8"):
        load(binary)


def test_names_of_recipes(tmp_path: Path) -> None:
    assert {source.variant for source in find_recipes("quickstart")} == {
        "softmax",
        "symmetric",
        "rpc",
        "primal_plus",
        "tssa",
    }
    (source,) = find_recipes("quickstart/rpc")
    assert (source.path.name, source.variant) == ("quickstart.yaml", "rpc")
    with pytest.raises(RecipeError, match='no such recipe; did you mean "quickstart/softmax"'):
        find_recipes("quickstart/sofmax")
    with pytest.raises(RecipeError, match="kattn list recipes shows"):
        find_recipes(str(tmp_path / "zzz"))


@pytest.mark.parametrize("name", shipped_recipes())
def test_shipped_recipes_load_and_begin_with_a_comment(name: str) -> None:
    (source,) = find_recipes(name)
    swept = name.startswith("sweeps/")
    recipes = (
        [one.recipe for one in load_sweep(source, data=False)] if swept else [load(source, weights=False, data=False)]
    )
    assert {recipe.name for recipe in recipes} == {name}
    assert read_notes(source).about


@pytest.mark.parametrize("path", sorted(recipes_folder().rglob("*.yaml")), ids=lambda path: path.stem)
def test_shipped_files_begin_with_a_comment(path: Path) -> None:
    title, *lines = path.read_text(encoding="utf-8").splitlines()
    assert title.startswith("# ")
    assert title.endswith(".")
    assert any(line.startswith(("#   kattn train ", "#   kattn sweep ")) for line in lines)
    assert all(len(line) <= 120 for line in lines)


def test_model_kinds(tmp_path: Path) -> None:
    path = tmp_path / "timm.yaml"
    path.write_text(
        "name: t\ndata: {image_size: 224}\nmodel: {name: deit_tiny_patch16_224}\nattention: rpc\n",
        encoding="utf-8",
    )
    assert isinstance(load(path).model, TimmModel)
    path.write_text("name: t\nattention: rpc\n", encoding="utf-8")
    assert load(path).model == Vit()
    path.write_text("name: t\nattention: xca\nmodel: {name: xcit}\n", encoding="utf-8")
    assert load(path).model == Tost(name="xcit")


@pytest.mark.parametrize("name", [name for name in PRESETS if not name.startswith("gpt2")])
def test_presets_are_written_out(name: str, tmp_path: Path) -> None:
    """With what is given beside the name, in the file or on the command line, in place of the preset's own."""
    path, again = tmp_path / "preset.yaml", tmp_path / "again.yaml"
    path.write_text(
        f"name: p\nattention: softmax\ndata: {{image_size: 64}}\nmodel: {{name: {name}, depth: 5}}\n", encoding="utf-8"
    )
    recipe = load(path, ["model.drop_path=0.1"])
    expected = {**PRESETS[name], "depth": 5, "drop_path": 0.1}
    assert recipe.model.model_dump(include=set(expected)) == expected
    again.write_text(recipe.to_yaml(), encoding="utf-8")
    assert load(again) == recipe


def test_weights_become_an_absolute_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    torch.save({"head.bias": torch.zeros(3)}, "w.pth")
    text = "name: w\nattention: softmax\ndata: {image_size: 32}\nmodel: {name: test_vit, weights: w.pth}\n"
    Path("w.yaml").write_text(text, encoding="utf-8")
    model = load(Path("w.yaml")).model
    assert model == TimmModel(name="test_vit", weights=str(tmp_path / "w.pth"))
    timms = load(Path("w.yaml"), ["model.weights=timm"]).model
    assert timms == TimmModel(name="test_vit", weights="timm")


words = st.sampled_from(
    """name seed data model attention train layers lr epochs softmax rpc primal vit digits
    0 -1 1: 3e-4 true null {} []""".split()  # noqa: SIM905
)
scalars = st.one_of(words, st.text(max_size=8), st.integers().map(str), st.floats().map(str))
documents = st.one_of(
    st.text(max_size=200),
    st.recursive(
        scalars,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3).map(lambda items: "[" + ", ".join(items) + "]"),
            st.lists(st.tuples(scalars, inner), max_size=4).map(
                lambda pairs: "{" + ", ".join(f"{key}: {value}" for key, value in pairs) + "}"
            ),
        ),
        max_leaves=12,
    ),
    st.lists(st.tuples(words, scalars), max_size=6).map(
        lambda pairs: "\n".join(f"{key}: {value}" for key, value in pairs)
    ),
)


@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    text=documents,
    override=st.one_of(st.none(), st.text(max_size=20), st.tuples(words, scalars).map("=".join)),
)
def test_any_text_loads_or_is_a_recipe_error(text: str, override: str | None, tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with contextlib.suppress(RecipeError):
        load(path, [] if override is None else [override])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=st.binary(max_size=120))
def test_any_bytes_load_or_are_a_recipe_error(raw: bytes, tmp_path: Path) -> None:
    path = tmp_path / "any.yaml"
    path.write_bytes(raw)
    with contextlib.suppress(RecipeError):
        load_recipe(path, kinds())


@pytest.mark.parametrize("text", ["[" * 3000, "{a: " * 3000, "a: " * 50, "name: " + "9" * 5000])
def test_extremes(text: str, tmp_path: Path) -> None:
    path = tmp_path / "deep.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(RecipeError):
        load(path)
