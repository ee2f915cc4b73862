"""``kattn eval`` and ``kattn attack --word-swap`` of language models: the rows that they write, and when."""

from __future__ import annotations

import csv
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from command_line import Said, kattn

from kattn_cli.data import TextData
from kattn_cli.data.word_swap import swap_words
from kattn_cli.experiment.run import open_run
from kattn_cli.models import AttentionModel
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.runs.weights import fingerprint, weights_path
from kattn_cli.tasks.text import perplexity
from kattn_cli.tasks.text.perplexity import PERPLEXITY_CSV
from kattn_cli.tasks.text.windows import surprise

CPU = torch.device("cpu")
BEER = "\n".join(f"{number} bottles of Ale on the wall, {number} bottles of Ale." for number in range(80))
OTHER = "No bottles on the wall.\n" * 9
RECIPE = """\
name: {name}
data: {{name: text, path: {path}, context: 12}}
model: {{name: decoder, dim: 16, depth: 1, heads: 2}}
attention: {name}
train: {{epochs: 1, batch_size: 64, lr: 1e-2}}
"""
ABOUT = ["corpus", "split", "swap_share", "swap_seed", "window", "stride", "asked", "checkpoint", "step", "weights"]
FOUND = ["tokens", "loss", "perplexity", "bits_per_byte", "top1", "top5", "unknown", "seconds"]


@pytest.fixture(scope="module")
def trained_on_text(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with two runs in ``results``, and the texts. Not to be changed."""
    from kattn_cli.commands.train.train import train

    folder = tmp_path_factory.mktemp("text")
    (folder / "beer.txt").write_text(BEER, encoding="utf-8")
    (folder / "other.txt").write_text(OTHER, encoding="utf-8")
    for name in ("softmax", "symmetric"):
        (folder / f"{name}.yaml").write_text(RECIPE.format(name=name, path=folder / "beer.txt"), encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KATTN_DATA", str(folder / "data"))
        recipes = [str(folder / f"{name}.yaml") for name in ("softmax", "symmetric")]
        train(recipes, [], [], results=folder / "results", device=CPU)
        yield folder


@pytest.fixture
def results(trained_on_text: Path, tmp_path: Path) -> Path:
    """A copy of the runs to write into."""
    return Path(shutil.copytree(trained_on_text / "results", tmp_path / "results"))


def measured(capfd: pytest.CaptureFixture[str], results: Path, *arguments: str | Path | int) -> Said:
    command, *rest = arguments
    said = kattn(capfd, command, "softmax", *rest, "--results", results, "--device", "cpu")
    assert said.code == 0, said.err
    return said


def rows(results: Path, name: str = "softmax") -> list[dict[str, str]]:
    return read_rows(results / name / "0" / PERPLEXITY_CSV)


def opened(results: Path) -> tuple[AttentionModel, TextData]:
    found = open_run(Run(results / "softmax" / "0"), CPU)
    assert isinstance(found.data, TextData)
    return found.model, found.data


def test_a_row_says_what_it_is_of(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = measured(capfd, results, "eval")
    (row,) = rows(results)
    folder = results / "softmax" / "0"
    with (folder / PERPLEXITY_CSV).open(newline="") as file:
        assert next(csv.reader(file)) == ABOUT + FOUND
    assert {key: row[key] for key in ABOUT if key != "step"} == {
        "corpus": "", "split": "test", "swap_share": "0.0", "swap_seed": "", "window": "12", "stride": "1",
        "asked": "all", "checkpoint": "best", "weights": fingerprint(weights_path(folder, "best")),
    }  # fmt: skip
    model, data = opened(results)
    split = data.splits["test"]
    expected = surprise(model, split.tokens, length=12, device=CPU)
    assert int(row["tokens"]) == len(split.tokens) - 1
    assert float(row["loss"]) == pytest.approx(expected.loss)
    assert float(row["perplexity"]) == pytest.approx(math.exp(expected.loss))
    bytes_ = split.bytes_ * (len(split.tokens) - 1) / len(split.tokens)
    assert float(row["bits_per_byte"]) == pytest.approx(expected.losses.sum().item() / math.log(2) / bytes_)
    assert 0 <= float(row["top1"]) <= float(row["top5"]) <= 100
    assert f"{folder}  test  perplexity {expected.perplexity:.3f}  " in said.out
    assert f"(window 12, stride 1, {row['tokens']} tokens)" in said.out


def test_what_was_measured_is_not_measured_anew(
    results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first = measured(capfd, results, "eval").out
    (row,) = rows(results)
    with monkeypatch.context() as patch:
        patch.setattr(perplexity, "surprise", lambda *_, **__: pytest.fail("was measured anew"))
        assert measured(capfd, results, "eval").out == first
        assert rows(results) == [row]
        assert len(Run(results / "softmax" / "0").manifest["measurements"]) == 1
    measured(capfd, results, "eval", "--again")
    (again,) = rows(results)
    assert {**again, "seconds": ""} == {**row, "seconds": ""}
    assert len(Run(results / "softmax" / "0").manifest["measurements"]) == 2


def test_every_setting_is_a_row_of_its_own(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    settings: list[list[str | int]] = [
        [],
        ["--window", 6],
        ["--stride", 4],
        ["--limit", 30],
        ["--split", "validation"],
        ["--checkpoint", "last"],
    ]
    for one in settings:
        measured(capfd, results, "eval", *one)
    found = rows(results)
    assert len(found) == len(settings)
    assert [(row["window"], row["stride"], row["asked"], row["split"], row["checkpoint"]) for row in found] == [
        ("12", "1", "all", "test", "best"),
        ("6", "1", "all", "test", "best"),
        ("12", "4", "all", "test", "best"),
        ("12", "1", "30", "test", "best"),
        ("12", "1", "all", "validation", "best"),
        ("12", "1", "all", "test", "last"),
    ]
    assert found[3]["tokens"] == "30"
    assert len({row["loss"] for row in found[:5]}) == 5


def test_a_limit_asks_for_the_first_tokens_alone(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    measured(capfd, results, "eval", "--limit", 30)
    model, data = opened(results)
    losses = surprise(model, data.splits["test"].tokens, length=12, device=CPU).losses
    assert float(rows(results)[0]["loss"]) == pytest.approx(losses[:30].mean().item())


def test_words_swapped(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Clean, then each share; the tokens are those of the swapped text."""
    said = measured(capfd, results, "attack", "--word-swap", "--share", "0.2,0.5", "--seed", 3)
    clean, few, many = rows(results)
    assert [(row["swap_share"], row["swap_seed"]) for row in (clean, few, many)] == [
        ("0.0", ""),
        ("0.2", "3"),
        ("0.5", "3"),
    ]
    model, data = opened(results)
    text = data.vocabulary.decode(np.asarray(data.splits["test"].tokens))
    assert text
    assert BEER.endswith(text)
    swapped = swap_words(text, 0.5, 3)
    assert "AAA" in swapped
    expected = surprise(model, data.vocabulary.encode(swapped), length=12, device=CPU)
    assert float(many["loss"]) == pytest.approx(expected.loss)
    assert int(many["tokens"]) == len(swapped) - 1
    bytes_ = len(swapped) * (len(swapped) - 1) / len(swapped)
    assert float(many["bits_per_byte"]) == pytest.approx(expected.bits_per_byte(bytes_))
    assert float(clean["loss"]) < float(many["loss"])
    assert "test, 20 % of words swapped  perplexity" in said.out
    measured(capfd, results, "attack", "--word-swap", "--share", "0.5", "--seed", 4)
    assert len(rows(results)) == 4
    assert rows(results)[3]["loss"] != many["loss"]


def test_default_shares_and_splits(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """002's table has both splits."""
    measured(capfd, results, "attack", "--word-swap", "--split", "validation", "--split", "test", "--stride", 6)
    found = [(row["split"], row["swap_share"], row["stride"]) for row in rows(results)]
    shares = ("0.0", "0.05", "0.1")
    assert found == [(split, share, "6") for split in ("validation", "test") for share in shares]


def test_other_corpora(results: Path, trained_on_text: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """By the run's vocabulary, and measured each time, since what stands at the path may be another text."""
    other = results / "other.txt"
    shutil.copy(trained_on_text / "other.txt", other)
    said = measured(capfd, results, "eval", "--corpus", f"bar={other}")
    own, bar = rows(results)
    model, data = opened(results)
    expected = surprise(model, data.vocabulary.encode(OTHER), length=12, device=CPU)
    assert float(bar["loss"]) == pytest.approx(expected.loss)
    assert (bar["corpus"], bar["split"], bar["tokens"]) == ("bar", "", str(len(OTHER) - 1))
    assert float(bar["unknown"]) == pytest.approx(1 / 24)  # N
    assert (own["corpus"], own["unknown"]) == ("", "0.0")
    assert "unknown tokens" not in said.out
    other.write_text("NOBODY " + OTHER, encoding="utf-8")
    said = measured(capfd, results, "eval", "--corpus", f"bar={other}")
    assert len(rows(results)) == 2
    assert float(rows(results)[1]["unknown"]) == pytest.approx(15 / 223)
    assert rows(results)[1]["loss"] != bar["loss"]
    assert "7 % unknown tokens: more than one token in twenty is unknown to the vocabulary" in said.out


def test_several_runs_side_by_side(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "attack", "softmax", "symmetric", "--word-swap", "--share", "0.5", "--results", results)
    assert said.code == 0
    table = said.out.partition("Perplexity, mean ± half of the 95 % interval over seeds")[2].splitlines()
    lines = {line.split()[0]: line.split()[1:] for line in table if line.startswith(("softmax", "symmetric"))}
    for name, cells in lines.items():
        assert cells == [*(f"{float(row['perplexity']):.2f}" for row in rows(results, name)), "1"]
    assert len(lines) == 2


def test_stopped_in_the_middle_it_goes_on_from_there(
    results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("attack", "softmax", "--word-swap", "--share", "0.2,0.5", "--results", results)
    left = [2]

    def counted(*arguments: object, **settings: object) -> object:
        left[0] -= 1
        if left[0] < 0:
            raise KeyboardInterrupt
        return surprise(*arguments, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(perplexity, "surprise", counted)
    said = kattn(capfd, *asked)
    assert (said.code, said.err.strip()) == (
        130,
        "Stopped; what was measured so far is in each run's perplexity.csv; the same command goes on from there",
    )
    assert len(rows(results)) == 2
    left[0] = 1
    assert kattn(capfd, *asked).code == 0
    assert len(rows(results)) == 3
