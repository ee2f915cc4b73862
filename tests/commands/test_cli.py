"""The commands as a user types them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from command_line import kattn as run_main
from conftest import TINY

import kattn_cli
from kattn_cli.attention import ATTENTIONS
from kattn_cli.tables.attack_names import epsilon_text

ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "COLUMNS": "120"}
CLEAN_COMMANDS = ["train", "eval", "attack", "spectrum", "complexity", "plot", "list"]


@pytest.fixture
def results(trained: Path, tmp_path: Path) -> Path:
    """A copy of the trained run's results folder, to write into."""
    return Path(shutil.copytree(trained, tmp_path / "results"))


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main(capfd, "--version")[1].strip() == f"kattn {kattn_cli.__version__}"


@pytest.mark.parametrize("command", CLEAN_COMMANDS)
def test_help_shows_an_example(command: str, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_main(capfd, command, "--help")
    assert code == 0
    assert f"Example:  kattn {command}" in out


def test_a_run_holds_what_it_should(trained: Path) -> None:
    run = trained / "tiny" / "0"
    manifest = json.loads((run / "manifest.json").read_text())
    for key in ("commit", "dirty", "versions", "machine", "device", "command", "start", "end", "threads", "operators"):
        assert key in manifest
    assert manifest["status"] == "finished"
    assert manifest["versions"]["torch"]
    assert {path.name for path in (run / "checkpoints").iterdir()} == {
        *("best.safetensors", "best.previous.safetensors"),
        *("last.safetensors", "last.previous.safetensors"),
        *("resume.pt", "resume.previous.pt"),
    }
    table = pd.read_csv(run / "metrics.csv")
    assert table["split"].tolist() == ["train", "validation"] * 2
    assert "convention: paper" in (run / "recipe.yaml").read_text()


def by_budget(run: Path) -> Any:
    """The rows of ``attacks.csv`` by attack and ε as text."""
    table = pd.read_csv(run / "attacks.csv")
    return table.assign(epsilon=table["epsilon"].map(epsilon_text)).set_index(["attack", "epsilon"])


def test_eval_attack_spectrum_plot(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    at = ("--results", results, "--device", "cpu")
    code, out, _ = run_main(capfd, "eval", *at)
    assert code == 0
    assert f"The newest run: {results / 'tiny' / '0'}" in out
    run = results / "tiny" / "0"
    (row,) = pd.read_csv(run / "eval.csv").to_dict("records")
    assert row["images"] == 355
    assert row["top1_low"] < row["top1"] < row["top1_high"] <= 100
    assert row["top1"] <= row["top5"]

    code, out, _ = run_main(capfd, "attack", "tiny", "--pgd", "--noise", "--epsilon", "8/255", "--epsilon", "0.9", *at)
    assert code == 0
    assert "8/255" in out
    table = by_budget(run)
    assert len(table) == 4
    assert (table["clean_top1"] == row["top1"]).all()
    assert table.loc[("pgd", "8/255"), "top1"] <= table.loc[("noise", "8/255"), "top1"]
    assert table.loc[("pgd", "230/255"), "top1"] == 0
    assert (table["epsilon_units"] == "pixels in [0, 1]").all()

    run_main(capfd, "attack", "tiny", "--pgd", "--epsilon", "8/255", *at)
    again = by_budget(run)
    assert len(again) == 4
    assert again.loc[("pgd", "8/255"), "top1"] == table.loc[("pgd", "8/255"), "top1"]

    code, _, _ = run_main(capfd, "spectrum", *at, "--inputs", "5")
    assert code == 0
    spectra = pd.read_csv(run / "spectrum.csv")
    assert len(spectra) == 2 * 2 * 4
    last = spectra.groupby(["layer", "head"])["cumulative_explained_variance"].last()
    assert last.tolist() == pytest.approx([1.0] * 4)

    code, out, _ = run_main(capfd, "plot", "--paper", "rpc", "--results", results)
    assert code == 0
    assert "| noise 230/255 top-1 |" in (run / "figures" / "paper_rpc.md").read_text()
    for name in ("curves", "robustness", "spectrum"):
        assert str(run / "figures" / f"{name}.png") in out
        assert (run / "figures" / f"{name}.pdf").stat().st_size > 5000
    assert pd.read_csv(run / "figures" / "comparison.csv")["quantity"].tolist() == [
        "params",
        "clean",
        "pgd 8/255",
        "pgd 230/255",
        "noise 8/255",
        "noise 230/255",
        "train s",
    ]
    measured = json.loads((run / "manifest.json").read_text())["measurements"]
    assert len(measured) == 3, "eval, attack, spectrum; the second attack had been measured"


def test_limit_and_several_runs(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(results / "tiny" / "0", results / "tiny" / "1")
    path = results / "tiny" / "1" / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    at = ("--results", results, "--device", "cpu")
    code, out, _ = run_main(capfd, "attack", "tiny", "--fgsm", "--epsilon", "4/255", "--limit", "50", *at)
    assert code == 0
    assert pd.read_csv(results / "tiny" / "1" / "attacks.csv")["images"].tolist() == [50]
    code, out, _ = run_main(capfd, "plot", "tiny", "--results", results)
    assert code == 0
    assert str(results / "figures" / "robustness.png") in out


def test_quiet(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert run_main(capfd, "eval", "tiny", "--quiet", "--results", results) == (0, "", "")


def test_the_readme_carries_the_table_of_mechanisms(capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_main(capfd, "list", "attention", "--markdown")
    assert code == 0
    assert len(out.splitlines()) == 2 + len(ATTENTIONS)
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    assert f"<!-- kattn list attention --markdown -->\n{out}<!-- end -->" in readme
    code, _, err = run_main(capfd, "list", "models", "--markdown")
    assert (code, err) == (2, "--markdown: only attention has such a table, not models\n")


@pytest.mark.parametrize("kind", ["attention", "data", "models", "attacks", "recipes", "runs"])
def test_list(kind: str, results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = run_main(capfd, "list", kind, "--results", results)
    expected = {
        "attention": "tssa",
        "data": "digits",
        "models": "deit_tiny",
        "attacks": "pgd",
        "recipes": "quickstart/rpc",
        "runs": "finished",
    }
    assert code == 0
    assert expected[kind] in out


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "nowhere.yaml"], "nowhere.yaml: there is no such recipe"),
        (["train", "train.epochs=5"], "No recipe was named. For example: kattn train quickstart/rpc"),
        (["train", "quickstart/rpc", "train.epoch=5"], 'did you mean "epochs"?'),
        (["train", "quickstart/rpc", "--force"], "so it goes with --resume"),
        (["eval", "--results", "{empty}"], "Make one with: kattn train quickstart/softmax"),
        (["plot", "--results", "{empty}"], "Make one with: kattn train quickstart/softmax"),
        (["eval", "tinny", "--results", "{results}"], 'no such run under {results}/; did you mean "tiny"?'),
        (
            ["eval", "tiny", "--split", "tets", "--results", "{results}"],
            "'tets' is not one of 'test', 'validation'",
        ),
        (["eval", "tiny", "--device", "gpu", "--results", "{results}"], "--device gpu: expected auto, cpu, cuda"),
        (["attack", "tiny", "--epsilon", "4/0", "--results", "{results}"], '"4/0" is not a number or a fraction'),
        (["attack", "tiny", "--epsilon", "4", "--results", "{results}"], "4 is not in (0, 1]"),
    ],
)
def test_wrong_input(
    arguments: list[str], expected: str, trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fill = {"results": str(trained), "empty": str(tmp_path / "empty")}
    code, out, err = run_main(capfd, *(argument.format(**fill) for argument in arguments))
    assert code == 2
    assert expected.format(**fill) in " ".join(err.split())
    assert "Traceback" not in out + err
    assert list(tmp_path.iterdir()) == []


def test_wrong_recipe_writes_nothing(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    good, bad = tmp_path / "good.yaml", tmp_path / "bad.yaml"
    good.write_text(TINY)
    bad.write_text("name: bad\n")
    code, _, err = run_main(capfd, "train", good, bad, "--results", tmp_path / "results")
    assert code == 2
    assert "attention  is missing" in err
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("command", ["eval", "attack", "spectrum"])
def test_unusable_checkpoints_are_refused_in_one_line(
    command: str, results: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run = results / "tiny" / "0"
    weights = run / "checkpoints" / "best.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-100])
    code, _, err = run_main(capfd, command, "tiny", "--results", results, "--device", "cpu", "-q")
    assert code == 2
    others = "--checkpoint best.previous (step 5), --checkpoint last (step 10), --checkpoint last.previous (step 5)"
    damage = f"is cut short ({len(whole) - 100:,} of {len(whole):,} bytes)"
    assert err == f"{weights}: {damage}; others can be asked for: {others}\n"
    weights.unlink()
    code, _, err = run_main(capfd, command, "tiny", "--results", results, "--device", "cpu", "-q")
    assert (code, err) == (2, f"{weights}: is missing; others can be asked for: {others}\n")
    weights.mkdir()
    code, _, err = run_main(capfd, command, "tiny", "--results", results, "--device", "cpu", "-q")
    assert (code, err) == (2, f"{weights}: is a folder; others can be asked for: {others}\n")
    weights.rmdir()
    weights.write_bytes(whole)
    recipe = run / "recipe.yaml"
    recipe.write_text(recipe.read_text().replace("iterations: 2", "iterations: 3"))
    code, _, err = run_main(capfd, command, "tiny", "--results", results, "--device", "cpu")
    assert code == 2
    assert "was made by another recipe: attention.layers.0.iterations was 2 and is 3" in err
    shutil.rmtree(run / "checkpoints")
    code, _, err = run_main(capfd, command, "tiny", "--results", results, "--device", "cpu")
    assert code == 2
    assert "has no checkpoint (its training is finished)" in err
    assert len(err.strip().splitlines()) == 1


def test_attention_of_ones_own(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    mine = tmp_path / "my_attention.py"
    mine.write_text(
        "from torch import nn\n\n\n"
        "class MeanAttention(nn.Module):\n"
        "    def __init__(self, dim, heads, *, seq_len, causal=False, gain=1.0):\n"
        "        super().__init__()\n"
        "        self.gain = gain\n"
        "        self.proj = nn.Linear(dim, dim)\n\n"
        "    def forward(self, x):\n"
        "        return self.gain * self.proj(x.mean(1, keepdim=True).expand_as(x))\n"
    )
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(TINY.replace("layers: {0: {name: rpc, iterations: 2}}", "gain: 2.0"))
    at = ("--results", tmp_path / "results", "--device", "cpu")
    overridden = f"attention.name={mine}:MeanAttention"
    assert run_main(capfd, "train", recipe, overridden, *at)[0] == 0
    assert run_main(capfd, "attack", "--fgsm", "--epsilon", "4/255", *at)[0] == 0
    code, out, _ = run_main(capfd, "spectrum", *at)
    assert code == 0
    assert "no attention matrix in layer 0, 1 (MeanAttention); nothing to decompose" in out
    assert run_main(capfd, "plot", "--results", tmp_path / "results")[0] == 0
    code, _, err = run_main(capfd, "train", recipe, overridden.replace("Mean", "Maen"), *at)
    assert code == 2
    assert 'has no nn.Module named MaenAttention; did you mean "MeanAttention"?' in err
    code, _, err = run_main(capfd, "train", recipe, overridden, "attention.gian=1.0", *at)
    assert code == 2
    assert 'attention.gian  unknown key; did you mean "gain"?' in err


def test_several_at_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "tiny.yaml"
    recipe.write_text(TINY)
    at = ("--results", tmp_path / "results", "--device", "cpu")
    code, out, _ = run_main(capfd, "train", recipe, "--seed", "0", "--seed", "1", "--jobs", "2", *at)
    assert code == 0
    assert f"{tmp_path / 'results' / 'tiny' / '1'}: " in out
    for seed in (0, 1):
        manifest = json.loads((tmp_path / "results" / "tiny" / str(seed) / "manifest.json").read_text())
        assert (manifest["status"], manifest["seed"]) == ("finished", seed)


def start_training(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    (folder / "long.yaml").write_text(TINY.replace("name: tiny", "name: long").replace("epochs: 2", "epochs: 5000"))
    command = [sys.executable, "-m", "kattn_cli", "train", "long.yaml", "--device", "cpu", *arguments]
    return subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )


def wait_for(path: Path, text: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 120
    while not (path.exists() and text in path.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.1)


@pytest.mark.parametrize("jobs", ["1", "2"])
def test_ctrl_c_keeps_the_run_and_leaves_with_130(jobs: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    process = start_training(tmp_path, "--jobs", jobs)
    run = tmp_path / "results" / "long" / "0"
    wait_for(run / "metrics.csv", "\n2,", process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "kattn train results/long/0 --resume" in err
    manifest = json.loads((run / "manifest.json").read_text())
    assert manifest["status"] == "interrupted"
    assert "SIGINT" in manifest["reason"]
    at = ("--results", tmp_path / "results", "--device", "cpu")
    assert run_main(capfd, "eval", "long", "--checkpoint", "last", *at)[0] == 0


def test_workers_keep_their_state_and_end_when_their_parent_is_killed(tmp_path: Path) -> None:
    process = start_training(tmp_path, "--jobs", "2")
    run = tmp_path / "results" / "long" / "0"
    wait_for(run / "metrics.csv", "\n2,", process)
    process.kill()
    deadline = time.monotonic() + 60
    while json.loads((run / "manifest.json").read_text())["status"] == "running":
        assert time.monotonic() < deadline
        time.sleep(0.1)
    process.communicate(timeout=240)
    assert "stopped by SIGTERM" in json.loads((run / "manifest.json").read_text())["reason"]
    assert (run / "checkpoints" / "resume.pt").exists()


def test_resume_refuses_a_run_that_is_finished(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    run = results / "tiny" / "0"
    code, _, err = run_main(capfd, "train", run, "--resume", "--results", results, "--device", "cpu")
    assert code == 2
    assert err.strip() == f"{run}: is finished; there is nothing to resume (train.epochs=… trains on)"


def test_resume_goes_on_with_the_same_run(tmp_path: Path) -> None:
    process = start_training(tmp_path)
    run = tmp_path / "results" / "long" / "0"
    wait_for(run / "metrics.csv", "\n2,", process)
    process.kill()
    process.wait()
    rows = len((run / "metrics.csv").read_text().splitlines())
    assert json.loads((run / "manifest.json").read_text())["status"] == "running"
    resumed = start_training(tmp_path, "--resume")
    wait_for(run / "metrics.csv", f"\n{rows // 2 + 5},", resumed)
    resumed.send_signal(signal.SIGINT)
    out, _ = resumed.communicate(timeout=240)
    assert "results/long/0: going on from step" in out
    (resumption,) = json.loads((run / "manifest.json").read_text())["resumptions"]
    assert resumption["command"].endswith("--resume")
    assert f"from step {resumption['step']:,} of" in out
    assert not (tmp_path / "results" / "long" / "0-2").exists()
    table = pd.read_csv(run / "metrics.csv")
    assert table["epoch"].tolist() == sorted(table["epoch"].tolist())
    assert not table.duplicated(["epoch", "split"]).any()


MISTAKEN = """
from torch import nn


class Base(nn.Module):
    def __init__(self, dim, heads, *, seq_len, causal=False, gain=1.0):
        super().__init__()


class Narrow(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()


class Mean(Base):
    def forward(self, x):
        return x.mean(1)


class Failing(Base):
    def forward(self, x):
        return undefined
"""


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Narrow", "takes no seq_len and no causal"),
        ("Mean", "forward must return x's shape, (1, 4, 16), not (1, 16)"),
        ("Failing", "forward fails: NameError: name 'undefined' is not defined (mine.py, line 22)"),
        ("Mean attention.gain=loud", 'attention.gain  expected a number, not "loud"'),
    ],
)
def test_mistakes_in_ones_own_attention_are_faults_of_the_recipe(
    name: str, expected: str, tmp_path: Path, tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    mine = tmp_path / "mine.py"
    mine.write_text(MISTAKEN)
    overrides = f"attention={{name: '{mine}:{name.partition(' ')[0]}'}}", *name.split()[1:]
    code, _, err = run_main(capfd, "train", tiny_recipe, *overrides, "--results", tmp_path / "results")
    assert code == 2
    assert expected in err
    assert not (tmp_path / "results").exists()
