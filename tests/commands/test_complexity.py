"""``kattn complexity`` as a user types it."""

from __future__ import annotations

import json
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from command_line import Said, kattn

from kattn_cli.attention import MECHANISMS
from kattn_cli.commands.complexity import measure as complexity
from kattn_cli.commands.complexity.grid import Setting, competitors
from kattn_cli.costs.timing import Cost
from kattn_cli.errors import RecipeError
from kattn_cli.kernels.choice import version

SMALL = ("--dim", "8", "--heads", "1", "--seconds", "0.01", "--device", "cpu")
OWN = """
import time
import torch
from torch import nn


class Base(nn.Module):
    def __init__(self, dim, heads, *, seq_len, causal=False, gain=1.0):
        super().__init__()
        self.map = nn.Linear(dim, dim, bias=False)
        self.gain = gain


class Own(Base):
    supports_causal = True

    def forward(self, x):
        if x.sum().item() > 1e9:
            return x
        return self.gain * self.map(x)


class Broken(Base):
    def forward(self, x):
        if x.shape[1] == 32:
            raise RuntimeError("not\\nthis size")
        return self.map(x)


class Sleepy(Base):
    def forward(self, x):
        if x.shape[1] > 16 and x.device.type != "meta":
            time.sleep(0.3)
        return self.map(x)
"""


@pytest.fixture
def own(tmp_path: Path) -> Path:
    path = tmp_path / "own.py"
    path.write_text(OWN)
    return path


def measured(capfd: pytest.CaptureFixture[str], folder: Path, *arguments: str) -> tuple[Said, pd.DataFrame]:
    said = kattn(capfd, "complexity", *arguments, *SMALL, "--results", folder)
    assert said.code == 0, said.err
    return said, pd.read_csv(folder / "complexity" / "cpu.csv").astype({"options": object}).fillna({"options": ""})


def test_the_papers_mechanisms_beside_both_softmaxes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said, table = measured(capfd, tmp_path, "--n", "32", "--n", "64", "--pass", "forward")
    assert table["attention"].unique().tolist() == list(MECHANISMS)
    assert table.groupby("attention")["version"].unique().map(list)["softmax"] == ["fast", "slow"]
    assert len(table) == (len(MECHANISMS) + 1) * 2
    assert (table["status"] == "ok").all()
    assert (table["repeats"] >= 3).all()
    assert (table["matrix_product_flops"] < table["forward_flops"]).all()
    manifest = json.loads((tmp_path / "complexity" / "cpu.json").read_text())
    assert (manifest["settings"]["dims"], manifest["status"]) == ([8], "complete")
    exponents = pd.read_csv(tmp_path / "complexity" / "cpu.exponents.csv").set_index(["attention", "pass"])
    assert exponents.loc[("tssa", "forward"), "forward_flops_exponent"] == pytest.approx(1.0, abs=0.01)
    assert exponents.loc[("softmax (slow)", "forward"), "forward_flops_exponent"] > 1.2
    assert "softmax (slow)" in said.out
    assert "pow, sum, clamp" in said.out, "what was not counted of tssa"
    assert str(tmp_path / "complexity" / "cpu_inference.png") in said.out
    assert (tmp_path / "complexity" / "cpu_inference.png").exists()


def test_named_mechanisms(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = ("--attention", "linear", "--attention", "rpc iterations=2 lambda=0.5")
    said, table = measured(capfd, tmp_path, *names, "--n", "16", "--pass", "forward")
    labels = list(zip(table["attention"], table["version"], table["options"], strict=True))
    assert labels == [
        ("softmax", "fast", ""), ("softmax", "slow", ""), ("linear", "fast", ""),
        ("rpc", "fast", "iterations=2 lambda=0.5"),
    ]  # fmt: skip
    assert "rpc: iterations=2 lambda=0.5" in said.out
    assert not list(tmp_path.rglob("*.png")), "one size is no line"


def test_every_combination_of_the_grid(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = list[tuple[Any, ...]]()

    def measure(module: Any, x: torch.Tensor, what: str, *bounds: Any) -> Cost:
        seen.append((*x.shape, module.heads, module.causal, x.dtype, what, version(), *bounds))
        return Cost(float(x.shape[1]), 0.1, 3, 1.0)

    monkeypatch.setattr(complexity, "measure", measure)
    monkeypatch.setattr(complexity, "draw_complexity", lambda *_: [])
    grid = ("--n", "16", "--dim", "4", "--heads", "2", "--batch", "1", "--batch", "3")
    causal = ("--causal", "no", "--causal", "yes", "--dtype", "bfloat16", "--limit", "9")
    said, table = measured(capfd, tmp_path, "--attention", "xca", *grid, *causal)
    keys = ["version", "attention", "pass", "dtype", "causal", "dim", "heads", "batch", "n"]
    assert len(table) == len(table[keys].drop_duplicates()) == 3 * 2**5
    without = table[(table["attention"] == "xca") & (table["causal"] == "yes")]
    assert set(without["status"]) == {"no causal form"}
    assert set(table.drop(without.index)["status"]) == {"ok"}
    assert len(seen) == len(table) - len(without)
    assert (3, 16, 4, 2, True, torch.bfloat16, "forward+backward", "slow", 0.01, None, 9.0) in seen
    assert "xca: no causal form" in said.out
    flops = table.query("attention == 'xca' and causal == 'no' and dim == 4 and heads == 2")
    by_batch = flops.groupby("batch")["forward_flops"].first()
    assert by_batch[3] == 3 * by_batch[1]


def test_versions(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--attention", "tssa", "--operators", "plain", "--operators", "slow", "--n", "16", "--pass", "forward")
    _, table = measured(capfd, tmp_path, *arguments)
    pairs = list(zip(table["attention"], table["version"], strict=True))
    assert pairs == [("softmax", "fast"), ("softmax", "slow"), ("tssa", "plain"), ("tssa", "slow")]


def test_the_slow_softmax_forms_its_matrix(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    _, table = measured(capfd, tmp_path, "--attention", "tssa", "--n", "512", "--pass", "forward")
    memory = table.groupby("version")["peak_mib"].max()
    assert memory["slow"] > 512 * 512 * 4 / 2**20 > memory["fast"]


def test_what_did_not_fit(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "one.yaml"
    recipe.write_text("name: one\nattention: symmetric\n")
    sizes = ("--n", "16", "--n", "1000000", "--n", "2000000")
    said, table = measured(capfd, tmp_path, str(recipe), *sizes, "--memory", "0.02", "--pass", "forward")
    symmetric = table[table["attention"] == "symmetric"]
    assert symmetric["status"].tolist() == ["ok", "out of memory", "out of memory at a smaller size"]
    assert symmetric["forward_flops"].is_monotonic_increasing, "counted also where nothing fits"
    assert "symmetric, forward: out of memory at N = 1,000,000; larger ones were not tried" in said.out


def test_what_was_freed_and_is_used_again_counts_as_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The system is then not asked for it, so its bound does not see it."""
    monkeypatch.setattr("kattn_cli.costs.timing.bounded_memory", lambda *_: nullcontext())
    one = competitors([], ["xca"], ["plain"], causal=False)[-1]
    setting = Setting(dim=64, heads=2, batch=1, causal=False, dtype="float32")
    bounds = complexity.Bounds(seconds=0.01, longest=60, memory=100 * 64 * 4)
    found = [complexity.outcome(one, setting, "forward", n, bounds, torch.device("cpu")).status for n in (100, 101)]
    assert found == ["ok", "out of memory"], "the output alone is as large as the input"


def test_what_fails_or_takes_too_long_stops_nothing_else(
    own: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    names = [word for name in ("Broken", "Sleepy", "Own gain=2.0") for word in ("--attention", f"{own}:{name}")]
    sizes = ("--n", "16", "--n", "32", "--n", "64", "--pass", "forward", "--limit", "0.15")
    said, table = measured(capfd, tmp_path, *names, *sizes)
    status = table.groupby("attention", sort=False)["status"].agg(list)
    assert status["Broken"] == ["ok", "failed: RuntimeError: not … (own.py, line 26)", "ok"]
    assert status["Sleepy"] == ["ok", "over 0.15 s a call", "over 0.15 s a call at a smaller size"]
    assert status["Own"] == ["ok"] * 3
    assert "Sleepy, forward: over 0.15 s a call at N = 32; larger ones were not tried" in said.out
    assert (table.query("attention == 'Own'")["forward_flops"] == [2 * n * 64 for n in (16, 32, 64)]).all()
    assert "no formula" in said.out


def test_an_option_that_the_causal_form_refuses(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    arguments = ("--attention", "primal", "--causal", "yes", "--n", "16", "--pass", "forward")
    _, table = measured(capfd, tmp_path, *arguments)
    assert table["status"].tolist()[2].startswith("no causal form: the causal form needs projection: data-independent")


def test_causal_primal_is_among_the_defaults() -> None:
    chosen = {one.label: one.options for one in competitors([], [], ["fast"], causal=True)}
    assert chosen["primal#2"] == "projection=data-independent"
    assert "primal#2" not in {one.label for one in competitors([], [], ["fast"], causal=False)}


def test_interrupted_and_gone_on_with(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ("complexity", "--attention", "tssa", "--n", "8", "--n", "16", "--pass", "forward", *SMALL)
    once, done = complexity.outcome, list[str]()

    def stopped(one: Any, *arguments: Any, after: int = 3, **named: Any) -> Any:
        if len(done) == after:
            raise KeyboardInterrupt
        done.append(one.label)
        return once(one, *arguments, **named)

    monkeypatch.setattr(complexity, "outcome", stopped)
    said = kattn(capfd, *command, "--results", tmp_path)
    assert said.code == 130
    goes_on = f"kattn {' '.join(command)} --results {tmp_path} --resume"
    stopped_line = f"Stopped; the rows so far are under {tmp_path}/complexity/. Go on with: {goes_on}"
    assert said.err.splitlines()[-1] == stopped_line, "below what the profiler may have said"
    path = tmp_path / "complexity" / "cpu.csv"
    before = pd.read_csv(path)
    assert len(before) == 3
    assert json.loads(path.with_suffix(".json").read_text())["status"] == "interrupted"

    before.loc[0, "status"] = "failed: KeyError: 'x'"
    before.to_csv(path, index=False)
    done.clear()
    monkeypatch.setattr(complexity, "outcome", partial(stopped, after=9))
    said = kattn(capfd, *command, "--results", tmp_path, "--resume")
    assert f"{path}: going on after 3 rows" in said.out
    assert done == ["softmax", "softmax", "tssa", "tssa"], "the row that failed, and what had not been measured"
    table = pd.read_csv(path)
    assert set(table["status"]) == {"ok"}
    assert len(table) == 6
    assert json.loads(path.with_suffix(".json").read_text())["status"] == "complete"


def test_resuming_after_memory_ran_out_does_not_try_larger_sizes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--attention", "tssa", "--n", "8", "--n", "16", "--pass", "forward")
    _, table = measured(capfd, tmp_path, *arguments)
    path = tmp_path / "complexity" / "cpu.csv"
    table.loc[4, "status"] = "out of memory"
    table.drop(index=5).to_csv(path, index=False)
    manifest = json.loads(path.with_suffix(".json").read_text())
    path.with_suffix(".json").write_text(json.dumps({**manifest, "status": "interrupted"}))
    _, table = measured(capfd, tmp_path, *arguments, "--resume")
    assert table["status"].tolist()[4:] == ["out of memory", "out of memory at a smaller size"]


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ("--dim 10 --dim 9 --heads 3", "--heads 3 does not divide --dim 10"),
        ("--fit-from 2000", "--fit-from 2000: expected at least two sizes from there on; --n goes to 2048"),
        ("--model", "No recipe was named. For example: kattn model-costs quickstart/softmax quickstart/rpc"),
        ("--decode --attention xca", "--attention xca: has no decode(x, state), token by token; these have: softmax"),
        ("--attention linformr", "--attention linformr: expected one of softmax, "),
    ],
)
def test_what_is_refused_before_anything_starts(
    arguments: str, expected: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = kattn(capfd, "complexity", *arguments.split(), "--device", "cpu", "--results", tmp_path)
    assert said.code == 2
    assert said.err.startswith(expected)
    assert len(said.err.splitlines()) == 1
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("linformr", r'did you mean "linformer"\?$'),
        ("rpc iteration=6", r'^--attention rpc: iteration: unknown key; did you mean "iterations"\?$'),
        ("rpc iterations=0", r"^--attention rpc: iterations: must be at least 1, not 0$"),
    ],
)
def test_faults_of_a_mechanism(text: str, expected: str) -> None:
    with pytest.raises(RecipeError, match=expected):
        competitors([], [text], ["fast"], causal=False)
