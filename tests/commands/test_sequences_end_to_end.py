"""Series, ListOps and text from the command line: train, eval, spectrum, fine-tuning, and what goes wrong."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import kattn
from tiny_series import UNCOUNTED, write_series

from kattn_cli.experiment import build, recipes
from kattn_cli.runs.bits import unpacked
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run

BEER = "\n".join(f"{number} bottles of beer on the wall, {number} bottles of beer." for number in range(80))
RECIPES = {
    "text": """\
data: {{name: text, path: {folder}/beer.txt, context: 16}}
model: {{name: decoder, dim: 16, depth: 2, heads: 2, mlp_ratio: 2.0}}
attention: symmetric
train: {{epochs: 1, batch_size: 64, lr: 1e-2}}
""",
    "series": f"""\
data: {{{{name: uea, set: {UNCOUNTED}, root: {{folder}}/uea, validation: 0.25}}}}
model: {{{{name: encoder, dim: 16, depth: 2, heads: 2}}}}
attention: symmetric
train: {{{{epochs: 2, batch_size: 6, lr: 1e-2}}}}
""",
    "lists": """\
data: {{name: listops, min_length: 4, max_length: 30, train: 64, choose_by: 16, test: 16}}
model: {{name: encoder, dim: 16, depth: 1, heads: 2}}
attention: softmax
train: {{epochs: 1, batch_size: 32, lr: 1e-2}}
""",
}
SENTENCES = """\
name: sentences
data: {{name: sst2, root: {folder}/sst2, seq_len: {seq_len}}}
model: {{name: decoder, dim: 16, depth: 2, heads: 2, mlp_ratio: 2.0}}
attention: {{name: rpc, iterations: 2, lambda: 3}}
train: {{epochs: 1, batch_size: 8}}
"""


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with the data, the recipes, and a run of each in ``results``. Not to be changed."""
    pytest.importorskip("aeon")
    from kattn_cli.commands.train.train import train

    folder = tmp_path_factory.mktemp("sequences")
    (folder / "beer.txt").write_text(BEER, encoding="utf-8")
    (folder / "empty.txt").touch()
    (folder / "letter.txt").write_text("b", encoding="utf-8")
    (folder / "bar.txt").write_text(BEER.replace("beer", "coffee"), encoding="utf-8")
    write_series(folder / "uea", train=24)
    (folder / "sst2").mkdir()
    for split in ("train", "dev", "test"):
        (folder / "sst2" / f"{split}.tsv").write_text("the wall fell on beer\t0\nbottles of beer\t1\n" * 8)
    for name, recipe in RECIPES.items():
        (folder / f"{name}.yaml").write_text(f"name: {name}\n" + recipe.format(folder=folder), encoding="utf-8")
    (folder / "sentences.yaml").write_text(SENTENCES.format(folder=folder, seq_len=20), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATTN_DATA", str(folder / "data"))
        recipes = [str(folder / f"{name}.yaml") for name in RECIPES]
        train(recipes, [], [], results=folder / "results", device=torch.device("cpu"))
        yield folder


@pytest.fixture
def results(written: Path, tmp_path: Path) -> Path:
    """A copy of the runs to write into."""
    return Path(shutil.copytree(written / "results", tmp_path / "results"))


def refused(capfd: pytest.CaptureFixture[str], results: Path, *arguments: str | Path) -> str:
    """The text of a command that goes wrong, in one line."""
    said = kattn(capfd, *arguments, "--results", results)
    assert said.code == 2
    assert said.err.count("\n") == 1, said.err
    return said.err.strip()


def faults(capfd: pytest.CaptureFixture[str], folder: Path, results: Path, recipe: str, *overrides: str) -> list[str]:
    """Of a recipe that nothing is started with: each key, and what is told of it."""
    path = folder / f"{recipe}.yaml"
    said = kattn(capfd, "train", path, "name=refused", *overrides, "--results", results)
    first, *lines = said.err.rstrip().splitlines()
    count = "1 fault" if len(lines) == 1 else f"{len(lines)} faults"
    assert (said.code, first) == (2, f"{path}: {count}, nothing was started")
    assert not (results / "refused").exists()
    return sorted("  ".join(re.split(r"\s{2,}", line.strip())[1:]) for line in lines)


def test_manifests_say_what_a_run_reads(written: Path) -> None:
    facts = {name: Run(written / "results" / name / "0").manifest for name in RECIPES}
    assert {name: one["reads"] for name, one in facts.items()} == dict(
        text="text", series="sequences", lists="sequences"
    )
    assert [facts[name]["chosen_by"] for name in RECIPES] == ["loss", "top1", "top1"]
    assert all(one["status"] == "finished" and one["peak_memory_mib"] > 0 for one in facts.values())
    assert [(written / "results" / name / "0" / "vocabulary.json").is_file() for name in RECIPES] == [
        True,
        False,
        False,
    ]


def test_eval_of_sequences(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """The tiny series' classes lie apart; a row as images have, of sequences."""
    said = kattn(capfd, "eval", "series", "lists", "--results", results)
    assert said.code == 0
    (series,), (lists,) = (read_rows(results / name / "0" / "eval.csv") for name in ("series", "lists"))
    assert (series["images"], series["classes"], float(series["top1"])) == ("6", "3", 100)
    assert (lists["images"], lists["classes"]) == ("16", "10")
    for row in (series, lists):
        assert 100 * unpacked(row["correct"], int(row["images"])).mean() == pytest.approx(float(row["top1"]))
    assert f"{results / 'series' / '0'}  test  top-1 100.00 " in said.out


def test_texts_and_others_at_once(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "eval", "series", "text", "--results", results)
    assert said.code == 0
    assert "  test  perplexity " in said.out
    assert "  test  top-1 " in said.out
    assert (results / "text" / "0" / "perplexity.csv").is_file()
    assert not (results / "text" / "0" / "eval.csv").exists()


def test_spectrum(results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of as many values as there are tokens; of sequences of several lengths the longest of the split."""
    monkeypatch.setattr("kattn_cli.figures.spectrum.draw_spectra", lambda runs, folder: [])
    assert kattn(capfd, "spectrum", *RECIPES, "--inputs", "5", "--results", results).code == 0
    found = {name: pd.read_csv(results / name / "0" / "spectrum.csv") for name in RECIPES}
    for name in RECIPES:
        assert (found[name]["singular_value"] >= 0).all()
        last = found[name][found[name]["index"] == found[name]["of"]]
        assert last["cumulative_explained_variance"].to_numpy() == pytest.approx(1)
    assert (set(found["text"]["of"]), set(found["text"]["inputs"])) == ({16}, {5})
    data = build.data_of(recipes.load(results / "series" / "0" / "recipe.yaml"))
    lengths = data.splits["validation"].lengths
    assert (set(found["series"]["of"]), set(found["series"]["inputs"])) == (
        {int(lengths.max())},
        {int((lengths == lengths.max()).sum())},
    )


def test_fine_tuning_a_language_model(written: Path, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Sentences by its tokens, a longer one by places that it did not have, RPC in place of symmetric attention."""
    source = results / "text" / "0"
    said = kattn(
        capfd, "train", written / "sentences.yaml", f"init_from={source}", f"data.vocabulary_from={source}",
        "--results", results,
    )  # fmt: skip
    assert said.code == 0, said.err
    run = Run(results / "sentences" / "0")
    weights = run.manifest["weights"]
    assert (weights["resized"], list(weights["initialised"])) == (["position"], ["head.weight", "head.bias"])
    own, theirs = (json.loads((one / "vocabulary.json").read_text()) for one in (run.folder, source))
    assert own == theirs
    assert kattn(capfd, "eval", "sentences", "--results", results).code == 0
    assert read_rows(run.folder / "eval.csv")[0]["images"] == "16"


def test_begun_from_another_vocabulary(written: Path, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    source = results / "text" / "0"
    said = kattn(capfd, "train", written / "sentences.yaml", f"init_from={source}", "--results", results)
    assert said.code == 2
    assert said.err.strip() == (
        f"sentences: {source / 'checkpoints' / 'best.safetensors'}: has a vocabulary of 27 tokens, "
        "and the recipe's data one of 9; data.vocabulary_from takes that of a run"
    )
    assert not (results / "sentences").exists(), "what cannot begin is no run"
    assert faults(capfd, written, results, "sentences", f"data.vocabulary_from={results / 'series' / '0'}") == [
        f"data.vocabulary_from  {results / 'series' / '0'}: has no vocabulary.json; give a run's folder, a "
        "vocabulary.json, a tokenizer.json, or gpt2"
    ]


@pytest.fixture
def beer(written: Path) -> Iterator[Path]:
    """The text, to be changed by a test and read anew by its commands."""
    path = written / "beer.txt"
    build._load.cache_clear()
    yield path
    path.write_text(BEER, encoding="utf-8")
    build._load.cache_clear()


@pytest.mark.parametrize(("text", "size"), [(BEER.replace("b", "q"), 27), ("Zz\n" + BEER, 29)])
def test_a_run_whose_text_has_changed(
    text: str, size: int, beer: Path, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """To as many other characters, so that the weights fit; or to more."""
    beer.write_text(text, encoding="utf-8")
    told = (
        f"{results / 'text' / '0'}: its vocabulary, of 27 tokens, is not that of its data now, of {size}, whose text "
        "has changed; put it back, or train again"
    )
    for command in (["eval", "text"], ["attack", "text", "--word-swap"], ["spectrum", "text"]):
        assert refused(capfd, results, *command) == told


def test_another_text_with_the_same_vocabulary_is_read(
    beer: Path, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """As one whose end alone has changed, since characters are those of the training text."""
    beer.write_text(BEER + "~~~~", encoding="utf-8")
    assert kattn(capfd, "eval", "text", "--results", results).code == 0
    (row,) = read_rows(results / "text" / "0" / "perplexity.csv")
    assert float(row["unknown"]) == pytest.approx(4 / (int(row["tokens"]) + 1))


def test_a_run_whose_vocabulary_is_damaged(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = results / "text" / "0" / "vocabulary.json"
    path.write_text(path.read_text()[:20], encoding="utf-8")
    assert refused(capfd, results, "eval", "text").startswith(
        f"{path}: is no JSON, or was cut short; give a run's folder"
    )


def test_a_run_of_other_sizes_than_its_weights(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    folder = results / "text" / "0"
    recipe = (folder / "recipe.yaml").read_text(encoding="utf-8")
    (folder / "recipe.yaml").write_text(recipe.replace("dim: 16", "dim: 32"), encoding="utf-8")
    assert refused(capfd, results, "eval", "text").startswith(f"{folder / 'checkpoints' / 'best.safetensors'}: ")


def test_attacks_of_the_wrong_kind(results: Path, trained: Path, capfd: pytest.CaptureFixture[str]) -> None:
    series, text = results / "series" / "0", results / "text" / "0"
    assert refused(capfd, results, "attack", "series", "--pgd") == (
        f"{series}: reads sequences (uea); an attack on pixels is for runs on images"
    )
    assert refused(capfd, results, "attack", "text", "--pgd") == (
        f"{text}: reads text, which --word-swap attacks; all others attack images"
    )
    assert refused(capfd, results, "attack", "series", "--word-swap") == (
        f"{series}: reads sequences (uea); perplexity and --word-swap are of language models"
    )
    assert refused(capfd, trained, "attack", "tiny", "--word-swap") == (
        f"{trained / 'tiny' / '0'}: reads images (digits); perplexity and --word-swap are of language models"
    )
    assert refused(capfd, results, "attack", "text", "--word-swap", "--pgd") == (
        "--word-swap: attacks text, and --pgd images; give one of the two"
    )
    assert refused(capfd, results, "attack", "series", "--share", "0.1") == (
        "--share, --split, --window and --stride: go with --word-swap"
    )


def test_measurements_of_the_wrong_kind(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    series, text = results / "series" / "0", results / "text" / "0"
    for option in (["--corruptions"], ["--corruption", "fog"], ["--save-images"], ["--seed", "0"]):
        for run, folder, reads in (("text", text, "text"), ("series", series, "sequences")):
            kinds = "images or images with masks" + (" or trajectories" if option[0] == "--seed" else "")
            told = f"{folder}: reads {reads}; {option[0]} is for runs on {kinds}"
            assert refused(capfd, results, "eval", run, *option) == told
    assert refused(capfd, results, "eval", "text", "--ood", "a=b") == f"{text}: reads text; --ood is for runs on images"
    for name, value in {"--window": "4", "--stride": "2", "--corpus": "a=b"}.items():
        told = f"{series}: reads sequences; {name} is for runs on text"
        assert refused(capfd, results, "eval", "text", "series", name, value) == told
    told = f"{text}: reads text; --episodes is for runs on trajectories"
    assert refused(capfd, results, "eval", "text", "--episodes", "3") == told


def test_runs_of_several_kinds_at_once(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "eval", "series", "text", "--limit", 6, "--results", results, "--device", "cpu")
    assert said.code == 0, said.err
    assert len(read_rows(results / "series" / "0" / "eval.csv")) == 1
    assert read_rows(results / "text" / "0" / "perplexity.csv")[0]["tokens"] == "6"


def test_windows_that_do_not_fit(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = results / "text" / "0"
    assert refused(capfd, results, "eval", "text", "--window", "17") == (
        f"{text}: sees 16 tokens, so --window 17 is too long"
    )
    assert refused(capfd, results, "eval", "text", "--stride", "17") == (
        f"{text}: --stride 17 is more than the window of 16"
    )
    assert refused(capfd, results, "attack", "text", "--word-swap", "--window", "8", "--stride", "9") == (
        f"{text}: --stride 9 is more than the window of 8"
    )


def test_corpora_that_cannot_be_read(written: Path, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    expected = {
        "gone.txt": "give a UTF-8 text file, a folder of .txt files, or a pattern with *",
        "empty.txt": "is empty; give a text",
        "letter.txt": "is too short; of one token or none there is nothing to predict",
    }
    for given, told in expected.items():
        path = written / given
        what = f"there is no file {path};" if given.startswith("gone") else f"{path}:"
        assert refused(capfd, results, "eval", "text", "--corpus", f"bar={path}") == f"--corpus bar: {what} {told}"
    assert refused(capfd, results, "eval", "text", "--corpus", "bar") == (
        "--corpus bar: expected NAME=PATH, such as ptb=data/ptb.test.txt"
    )


NO_CAUSAL_FORM = (
    "has no causal form, as a decoder asks; these have: softmax, symmetric, scaled, rpc, primal, tssa, mssa, linear, "
    "performer, cosformer, flowformer, reformer, longformer"
)
AUGMENTED = "is for images, and the model reads sequences; leave this out"


@pytest.mark.parametrize(
    ("recipe", "overrides", "told"),
    [
        ("text", ["model.name=encoder"], ["model.name  encoder classifies, and text is running text; take decoder"]),
        ("text", ["model.name=vit", "model.mlp_ratio=2.0"],
         ["data.name  text holds text; take model.name: decoder, or another data set"]),
        ("series", ["model.name=vit"],
         ["data.name  uea holds sequences; take model.name: encoder or decoder, or another data set"]),
        ("series", ["model.name=decoder"],
         ["model.name  decoder reads tokens one after the other, and uea holds series of numbers; take encoder"]),
        ("text", ["data={name: digits}"],
         ["data.name  digits holds images, which encoder and decoder do not read; take model.name: vit or tost, or "
          "another data set"]),
        ("text", ["attention=nystromformer"], [f"attention.name  nystromformer {NO_CAUSAL_FORM}"]),
        ("text", ["attention.layers.-1=xca"], [f"attention.layers.-1  xca {NO_CAUSAL_FORM}"]),
        ("text", ["attention=primal"],
         ["attention  the causal form needs projection: data-independent, since f(X) samples the future"]),
        ("lists", ["train.flip=0.5", "train.mixup=0.8", "train.randaugment=rand-m9-mstd0.5-inc1"],
         [f"train.flip  {AUGMENTED}", f"train.mixup  {AUGMENTED}", f"train.randaugment  {AUGMENTED}"]),
        ("lists", ["data.image_size=32"], ["data.image_size  unknown key"]),
        ("text", ["data.train=beer.txt"], ["data.path  is cut into all splits; leave out train, or this"]),
        ("text", ["data.contxt=32"], ['data.contxt  unknown key; did you mean "context"?']),
        ("text", ["data.validation=0.2", "data.classes=3"],
         ["data.classes  text is running text, which has none; leave this out",
          "data.validation  text is running text, held out by its own rule; leave this out"]),
    ],
)  # fmt: skip
def test_recipes_that_contradict_themselves(
    recipe: str, overrides: list[str], told: list[str], written: Path, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert faults(capfd, written, results, recipe, *overrides) == told


@pytest.mark.parametrize(
    ("overrides", "told"),
    [
        (["data.path={folder}/empty.txt"], "text: data.path: {folder}/empty.txt: is empty; give a text"),
        (["data.path={folder}/letter.txt"],
         "text: the validation split has no text; give more, or larger shares"),
        (["data.context=3000"],
         "text: the validation split has 156 tokens, and a window of context 3,000 needs 3,001; give a longer text, or "
         "a smaller context"),
    ],
)  # fmt: skip
def test_texts_too_short_to_train_on(
    overrides: list[str], told: str, written: Path, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    given = [one.format(folder=written) for one in overrides]
    error = refused(capfd, results, "train", written / "text.yaml", "name=short", *given)
    assert error == f"short: {told.format(folder=written)}"
    assert not (results / "short").exists(), "what cannot begin is no run"


def test_data_are_loaded_once_for_all_runs_of_them(written: Path) -> None:
    recipe = recipes.load(written / "lists.yaml")
    assert build.data_of(recipe) is build.data_of(recipe.model_copy(update={"seed": 3}))
