"""Several recipes in one file: what a variant takes from the file, what it changes, and faults with their lines."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import kattn

from kattn_cli.errors import RecipeError
from kattn_cli.experiment.recipes import load_each
from kattn_cli.recipe.files import Source, find_recipes
from kattn_cli.recipe.load import load_recipe, read_notes
from kattn_cli.tasks import kinds

FILE = """\
name: mine
expect: {top-1: [95, 98]}
data: {name: digits}
model: {name: vit, dim: 32, heads: 2}
attention: softmax
train: {epochs: 5, lr: 1e-3}
variants:
  plain:
  hot:
    about: At a high rate
    expect: {top-1: 96.5, loss: 0.1}
    train: {lr: 1e-2}
  mixed:
    attention: {layers: {0: symmetric}}
    seeds: [0, 1]
  rpc:
    model: {name: tost, dim: 64}
    attention: {name: rpc, iterations: 2}
"""


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text(FILE, encoding="utf-8")
    return Path("mine.yaml")


def test_a_variant_changes_keys_and_begins_named_sections_anew(mine: Path) -> None:
    plain, hot, mixed, rpc = (load_recipe(source, kinds()) for source in find_recipes("mine.yaml"))
    assert [one.name for one in (plain, hot, mixed, rpc)] == ["mine/plain", "mine/hot", "mine/mixed", "mine/rpc"]
    assert hot == plain.model_copy(update={"name": "mine/hot", "train": plain.train.model_copy(update={"lr": 1e-2})})
    assert (mixed.attention.name, mixed.attention.layers[0].name, mixed.seeds) == ("softmax", "symmetric", [0, 1])
    assert rpc.model.model_dump(include={"name", "dim", "heads"}) == {"name": "tost", "dim": 64, "heads": 4}
    assert (rpc.attention.name, rpc.attention.options) == ("rpc", {"iterations": 2})


@pytest.mark.parametrize("reference", ["mine.yaml/hot", "mine/hot", "./mine.yaml/hot"])
def test_names_of_a_variant(mine: Path, reference: str) -> None:
    (source,) = find_recipes(reference)
    assert source == Source(mine, "hot")
    second = load_recipe(source, kinds(), ["name=second", "train.lr=0.5"])
    assert second.model_dump(include={"name"}) == {"name": "second"}


def test_what_it_says_of_itself(mine: Path) -> None:
    notes = read_notes(Source(mine, "hot"))
    assert (notes.about, notes.expect) == ("At a high rate", {"top-1": 96.5, "loss": 0.1})
    assert read_notes(Source(mine, "plain")).expected == "top-1 95 to 98"


def test_a_single_recipe_may_say_it_too(tmp_path: Path) -> None:
    path = tmp_path / "one.yaml"
    path.write_text("# A first.\nname: one\nexpect: {top-1: 90}\nattention: softmax\n", encoding="utf-8")
    assert load_recipe(path, kinds()).name == "one"
    assert read_notes(Source(path)).about == "A first."
    assert read_notes(Source(path)).expected == "top-1 90"


@pytest.mark.parametrize("reference", ["mine.yaml/hat", "mine/hat"])
def test_a_variant_that_is_not_there(mine: Path, reference: str) -> None:
    with pytest.raises(RecipeError, match=r'mine.yaml: has no variant "hat"; did you mean "hot"\? \(it has plain, hot'):
        find_recipes(reference)


def test_a_file_of_several_is_no_recipe(mine: Path) -> None:
    with pytest.raises(RecipeError, match=r"has several recipes; name one: mine.yaml/plain, mine.yaml/hot"):
        load_recipe(mine, kinds())


def test_all_faults_of_all_variants_with_their_lines(mine: Path) -> None:
    faulty = FILE.replace("epochs: 5", "epochs: 0").replace("train: {lr: 1e-2}", "train: {lr: -1}\n    atention: rpc")
    mine.write_text(faulty.replace("iterations: 2", "iterations: 0"), encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        load_each(["mine.yaml"])
    first, *rest = str(caught.value).splitlines()
    assert first == "mine.yaml: 4 faults, nothing was started"
    assert [line.split()[:3] for line in rest] == [
        ["line", "6", "train.epochs"],
        ["line", "12", "variants.hot.train.lr"],
        ["line", "13", "variants.hot.atention"],
        ["line", "19", "variants.rpc.attention.iterations"],
    ]
    assert rest[2].endswith('unknown key; did you mean "attention"?')


@pytest.mark.parametrize(
    ("wrong", "line", "message"),
    [
        ("variants: [1]", 2, "expected a mapping of names to what sets each apart, not a list"),
        ("variants: {a b: {}}", 2, "expected a name of letters, digits and . _ + -"),
        ("variants: {a: 3}", 2, "expected a mapping of keys, not 3"),
        ("variants: {a: {name: b}}", 2, "is the file's name and the variant's, such as mine/a"),
        ("variants: {a: {variants: {}}}", 2, "a variant has none of its own"),
        (
            "variants: {a: {expect: {top-1: high}}}",
            2,
            'expected a number, or the least and the most: [95, 98], not "high"',
        ),
        ("variants: {a: {about: [1]}}", 2, "expected a line of text, not a list"),
    ],
)
def test_faults_of_variants(mine: Path, wrong: str, line: int, message: str) -> None:
    mine.write_text(f"name: mine\n{wrong}\nattention: softmax\n", encoding="utf-8")
    with pytest.raises(RecipeError) as caught:
        load_each(["mine.yaml"])
    assert f"line {line} " in str(caught.value)
    assert message in str(caught.value)


def test_sweeps_and_overrides_work_on_variants(mine: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "sweep", "mine/hot", "train.epochs=2", "--over", "train.lr=[0.1,0.2]", "--dry-run")
    assert said.code == 0
    assert "mine/hot: 2 points" in said.out
    mine.write_text(FILE + "sweep: {train.lr: [0.1, 0.2]}\n", encoding="utf-8")
    with pytest.raises(RecipeError, match=r"train them with: kattn sweep mine.yaml/hot"):
        load_recipe(Source(mine, "hot"), kinds())
    said = kattn(capfd, "sweep", "mine.yaml", "--dry-run")
    assert (said.out.count(": 2 points"), said.out.count(": 4 points")) == (3, 1)  # mixed has two seeds
