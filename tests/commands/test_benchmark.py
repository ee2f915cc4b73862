"""``kattn benchmark`` at sizes of no meaning: what is measured, written, gone on with, and said of faults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch
from command_line import kattn

from kattn_cli.commands.benchmark import items as package
from kattn_cli.commands.benchmark import measure as run
from kattn_cli.commands.benchmark.item import Check, Outcome, Place
from kattn_cli.commands.benchmark.items import bandwidth, growth, races
from kattn_cli.costs.roofline import Ceilings, Work
from kattn_cli.statistics.intervals import median_interval

QUICK = ("--rounds", "6", "--seconds", "0.001", "--device", "cpu")


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, size in {"LONG": 96, "LONGER": 128, "PRIMAL_ROWS": 32}.items():
        monkeypatch.setattr(races, name, size)
    monkeypatch.setattr(growth, "LENGTHS", (32, 64, 128))
    monkeypatch.setattr(growth, "REMEMBERED", (128, 256, 512))
    monkeypatch.setattr(growth, "CONTEXTS", (32, 64))
    monkeypatch.setattr(bandwidth, "TOKENS", 128)
    monkeypatch.setattr(run, "ceilings", lambda *arguments: Ceilings(1e10, 1e11))


def test_a_race(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = kattn(capfd, "benchmark", "causal_tssa_operator", *QUICK, "--results", tmp_path)
    assert code == 0
    checks = pd.read_csv(tmp_path / "benchmark" / "cpu.csv").set_index("quantity")
    measured = pd.read_csv(tmp_path / "benchmark" / "cpu.measured.csv")
    rounds = measured.groupby("program")["round"].apply(list).to_dict()
    assert rounds == {name: [1, 2, 3, 4, 5, 6] for name in ("fast", "plain")}
    milliseconds = measured.pivot(index="round", columns="program", values="milliseconds")
    ratio = (milliseconds["plain"] / milliseconds["fast"]).median()
    time = checks.loc["time"]
    assert time["value"] == pytest.approx(ratio, rel=1e-3)
    assert time["low"] <= time["value"] <= time["high"]
    assert (time["relation"], time["bound"]) == ("at least", 3)
    assert time["holds"] == ("yes" if time["value"] >= 3 else "no")
    assert "≥ 3" in out
    assert (tmp_path / "benchmark" / "cpu.png").exists()


def test_it_goes_on_where_it_was(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    items = ("causal_tssa_operator", "rpc_long")
    with monkeypatch.context() as stopped:
        stopped.setitem(package.ITEMS, "rpc_long", _interrupted)
        code, _, err = kattn(capfd, "benchmark", *items, *QUICK, "--results", tmp_path)
    assert code == 130
    assert "--resume" in err
    first = (tmp_path / "benchmark" / "cpu.csv").read_text()
    assert json.loads((tmp_path / "benchmark" / "cpu.json").read_text())["status"] == "interrupted"
    code, _, _ = kattn(capfd, "benchmark", *items, *QUICK, "--results", tmp_path, "--resume")
    assert code == 0
    assert (tmp_path / "benchmark" / "cpu.csv").read_text().startswith(first)
    checks = pd.read_csv(tmp_path / "benchmark" / "cpu.csv")
    assert checks["item"].unique().tolist() == list(items)
    assert json.loads((tmp_path / "benchmark" / "cpu.json").read_text())["status"] == "complete"


def _interrupted(place: object) -> Outcome:
    raise KeyboardInterrupt


def test_growth_and_bandwidth(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    items = ("time_exponents", "memory_exponents", "decoding", "bandwidth")
    code, _, _ = kattn(capfd, "benchmark", *items, *QUICK, "--results", tmp_path)
    assert code == 0
    checks = pd.read_csv(tmp_path / "benchmark" / "cpu.csv").set_index(["item", "ours", "quantity"])
    memory = checks.loc["memory_exponents"]["value"].droplevel("quantity")
    assert memory["softmax (slow)"] > 1.5
    assert memory["softmax"] < 1.1
    assert memory["tssa"] == pytest.approx(1, abs=0.1)
    assert checks.loc[("decoding", "tssa", "memory"), "value"] == pytest.approx(1, abs=0.05)
    assert checks.loc[("bandwidth", "tssa", "bandwidth"), "value"] > 0


class OutOfResourcesError(Exception):
    """Like Triton's own, which are no RuntimeError."""


@pytest.mark.parametrize("kind", [RuntimeError, OutOfResourcesError])
def test_an_item_that_fails_does_not_stop_the_others(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, kind: type[Exception]
) -> None:
    def broken(place: object) -> Outcome:
        raise kind("no kernel image\nand much more")

    monkeypatch.setitem(package.ITEMS, "rpc_long", broken)
    code, out, err = kattn(capfd, "benchmark", "rpc_long", "causal_tssa_operator", *QUICK, "--results", tmp_path)
    assert (code, err) == (0, "")
    assert "rpc_long: failed: no kernel image\n" in out
    checks = pd.read_csv(tmp_path / "benchmark" / "cpu.csv")
    assert checks["quantity"].tolist() == ["failed", "time", "memory", "roofline"]


@pytest.mark.parametrize(("kind", "calls"), [("cpu", 1), ("cuda", 2)])
def test_memory_on_a_gpu_is_not_that_of_the_first_call(monkeypatch: pytest.MonkeyPatch, kind: str, calls: int) -> None:
    def peak(call: Callable[[], object], device: torch.device) -> float:
        assert len(called) == calls - 1
        call()
        return 1.5

    called: list[int] = []
    monkeypatch.setattr("kattn_cli.commands.benchmark.item.peak_memory", peak)
    place = Place(torch.device(kind), torch.float32, Ceilings(1, 1), 1, 1, lambda name: None)
    assert place.peak_memory(lambda: called.append(1)) == 1.5
    assert len(called) == calls


def test_an_unknown_item(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, err = kattn(capfd, "benchmark", "rpc_lon", "--results", tmp_path)
    assert code == 2
    assert err.startswith("rpc_lon: expected one of tssa_operator, ")
    assert err.endswith('did you mean "rpc_long"?\n')


def test_verdicts_by_hand() -> None:
    assert Check("time", "a", "b", 3.2, 3, 4, "at least", 3, "").holds == "yes"
    assert Check("memory", "a", "b", 0.06, 0, 0, "at most", 0.05, "").holds == "no"
    assert Check("time", "a", "b", 3.2, 3, 4, "at least", None, "").holds == ""


def test_median_interval_by_hand() -> None:
    """Six values: the chance that the median lies outside the least and greatest is 2 / 2⁶, under 5 %."""
    assert median_interval([5, 1, 4, 2, 6, 3]) == (3.5, 1, 6)
    middle, low, high = median_interval([1, 2, 3, 4, 5])
    assert middle == 3
    assert low != low
    assert high != high


def test_work_of_pursuit_is_that_of_its_projections_and_attentions() -> None:
    """Four iterations, an attention each, after one projection to q, k and v: C = 384 in float32."""
    place = SimpleNamespace(itemsize=4)
    c = 384
    found = races.RACES["rpc_image"].work(place)  # type: ignore[arg-type]
    images = 32 * 197
    attention = (4 + 8) * images * c * 4, 7 * 2 * 32 * 197**2 * c
    projection = 3 * images * (c + 3 * c) * 4, 3 * 2 * images * c * 3 * c
    assert found == Work(4 * attention[0] + projection[0], 4 * attention[1] + projection[1])
