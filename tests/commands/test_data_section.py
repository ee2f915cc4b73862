"""The data section of a recipe against what is there."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from conftest import TINY
from tiny_data import write_mnist

from kattn_cli.data import DATASETS
from kattn_cli.data.sets.digits import Digits
from kattn_cli.data.sets.fashion_mnist import FashionMnist
from kattn_cli.errors import RecipeError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.build import data_of
from kattn_cli.recipe.schema import Recipe
from kattn_cli.training.opened import identity

Load = Callable[..., Recipe]


@pytest.fixture(autouse=True)
def _nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "shared"))
    monkeypatch.setattr(FashionMnist, "elsewhere", ())


@pytest.fixture
def load(tmp_path: Path) -> Load:
    """Reads the tiny recipe with another data section."""
    path = tmp_path / "tiny.yaml"

    def read(section: str, *overrides: str) -> Recipe:
        path.write_text(TINY.replace("data: {name: digits}", f"data: {{{section}}}"))
        return recipes.load(path, overrides)

    return read


MISSING = "data.root  there is no train-images-idx3-ubyte (or train-images-idx3-ubyte.gz) in "


@pytest.mark.parametrize(
    ("section", "expected"),
    [
        ("name: minst", ['data.name  expected one of digits, mnist, fashion_mnist', 'did you mean "mnist"?']),
        ("name: digits, root: /data", ["data.root  unknown key"]),
        ("name: digits, image_sise: 8", ['data.image_sise  unknown key; did you mean "image_size"?']),
        ("name: mnist, download: 1", ["data.download  expected true or false, not 1"]),
        ("name: fashion_mnist, classes: 100, channels: 3, download: true", [
            "data.classes   fashion_mnist has 10 classes, not 100",
            "data.channels  fashion_mnist has 1 channel, not 3",
        ]),
        ("name: cifar10, channels: 1", ["data.channels  cifar10 has 3 channels, not 1", "data.root  there is no file"]),
        ("name: mnist", [MISSING + "{shared}/mnist; kattn data fetch mnist downloads it"]),
        ("name: mnist, root: /nowhere", [MISSING + "/nowhere; kattn data fetch mnist downloads it"]),
        ("validation: 0.1", ["data.validation  digits has a validation split of its own; leave this out"]),
        ("name: mnist, download: true, validation: 0.1, choose_on: test", [
            "data.validation  is held out of training to choose by, and choose_on is test",
        ]),
        ("name: cifar10, download: true, image_size: 30", ["model.patch_size  must divide the image size, 30"]),
        ("name: mnist, image_size: 30", [MISSING[:40], "model.patch_size  must divide the image size, 30"]),
    ],
)  # fmt: skip
def test_faults(section: str, expected: list[str], load: Load, tmp_path: Path) -> None:
    with pytest.raises(RecipeError) as caught:
        load(section)
    lines = [" ".join(line.split()) for line in str(caught.value).splitlines()]
    assert len(lines) == 1 + len([part for part in expected if not part.startswith("did you")])
    for part in expected:
        assert " ".join(part.format(shared=tmp_path / "shared").split()) in " ".join(lines)


def test_a_missing_file_is_no_fault_if_it_will_be_downloaded(
    load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert load("name: cifar100, download: true").data.options == {"root": None, "download": True}
    monkeypatch.chdir(tmp_path)
    assert load("name: cifar100, download: true, root: new").data.options["root"] == str(tmp_path / "new")


def test_options_are_written_out_in_one_order(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write_mnist(tmp_path / "here")
    recipe = load("download: false, root: here, name: mnist", "data.validation=0.2")
    written = yaml.safe_load(recipe.to_yaml())["data"]
    assert list(written)[-2:] == ["root", "download"]
    assert written["root"] == str(tmp_path / "here")
    assert written["validation"] == 0.2
    assert recipe.to_yaml() == load(f"name: mnist, validation: 0.2, root: {tmp_path / 'here'}").to_yaml()
    path = tmp_path / "again.yaml"
    path.write_text(recipe.to_yaml())
    assert recipes.load(path).to_yaml() == recipe.to_yaml()


def test_data_is_loaded_once(load: Load, tmp_path: Path) -> None:
    write_mnist(tmp_path / "here")
    root = f"name: mnist, root: {tmp_path / 'here'}"
    assert data_of(load(root)) is data_of(load(root, "train.epochs=7"))
    assert data_of(load(root)) is not data_of(load(root, "data.validation=0.3"))
    assert len(data_of(load(root, "data.validation=0.3")).splits["train"]) == 40


def test_a_checkpoint_does_not_know_where_its_data_lay(load: Load, tmp_path: Path) -> None:
    write_mnist(tmp_path / "here")
    write_mnist(tmp_path / "there")
    one, other = (load(f"name: mnist, root: {tmp_path / place}") for place in ("here", "there"))
    assert identity(one) == identity(other)
    assert identity(one)["data"]["name"] == "mnist"
    assert identity(one) != identity(load(f"name: mnist, root: {tmp_path / 'here'}, validation: 0.3"))


def test_the_files_need_not_be_there_to_read_a_recipe(tmp_path: Path) -> None:
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY.replace("digits", "mnist, classes: 11"))
    with pytest.raises(RecipeError, match="1 fault, "):
        recipes.load(path, data=False)
    path.write_text(TINY.replace("digits", "mnist, classes: 10"))
    assert recipes.load(path, data=False).data.options == {"root": None, "download": False}


class Hub(Digits):
    """With paths among its options."""

    path_options = ("path", "listed")

    def __init__(self, *, path: str, listed: str | None = None) -> None:
        if path == "both":
            raise ValueError("path and listed do not go together")
        self.path = path

    def missing(self) -> str:
        return "data.path: there is nothing" if self.path == "nothing" else ""


def test_paths_are_written_out_and_names_are_not(load: Load, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(DATASETS, "hub", Hub)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "listed.txt").touch()
    options = load("name: hub, path: someone/digits, listed: listed.txt").data.options
    assert options == {"path": "someone/digits", "listed": str(tmp_path / "listed.txt")}


@pytest.mark.parametrize(
    ("path", "expected"),
    [("nothing", "data.path  there is nothing"), ("both", "data.name  path and listed do not go together")],
)
def test_a_data_set_names_the_option_at_fault(
    path: str, expected: str, load: Load, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(DATASETS, "hub", Hub)
    with pytest.raises(RecipeError) as caught:
        load(f"name: hub, path: {path}")
    assert str(caught.value).endswith(expected)
    with pytest.raises(RecipeError, match=r"data\.path  is missing"):
        load("name: hub")


def test_a_run_whose_data_is_gone_says_so(load: Load, tmp_path: Path) -> None:
    write_mnist(tmp_path / "here")
    path = tmp_path / "recipe.yaml"
    path.write_text(load(f"name: mnist, root: {tmp_path / 'here'}").to_yaml())
    shutil.rmtree(tmp_path / "here")
    with pytest.raises(RecipeError, match=r"data\.root  there is no train-images-idx3-ubyte"):
        recipes.load(path, weights=False)
