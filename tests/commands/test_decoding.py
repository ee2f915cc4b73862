"""``kattn decoding``: its table, what is said of it, going on, and errors before anything is measured."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from command_line import kattn

from kattn_cli.commands.decoding import measure as decoding
from kattn_cli.commands.decoding.measure import measure_decoding
from kattn_cli.commands.plot.plot import plot_table
from kattn_cli.errors import KattnError
from kattn_cli.recipe.schema import Mechanism

MECHANISMS = {"softmax": Mechanism(name="softmax"), "tssa": Mechanism(name="tssa")}
COLUMNS = [
    "attention", "device", "dim", "heads", "batch", "dtype", "context", "milliseconds", "milliseconds_low",
    "milliseconds_high", "spread", "ratio", "ratio_low", "ratio_high", "rounds", "state_mib", "peak_mib", "status",
]  # fmt: skip


def run(results: Path, mechanisms: dict[str, Mechanism] | None = None, resume: bool = False, **changes: Any) -> Path:
    given: dict[str, Any] = {"contexts": [64, 16], "dim": 16, "heads": 2, "batch": 1, "dtype": "float32"}
    given |= {"device": torch.device("cpu"), "seconds": 0.0, "limit": None, **changes}
    return measure_decoding(mechanisms or MECHANISMS, **given, results=results, resume=resume)


def test_the_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = run(tmp_path)
    assert path == tmp_path / "complexity" / "decoding-cpu.csv"
    table = pd.read_csv(path)
    assert list(table) == COLUMNS
    assert list(zip(table["attention"], table["context"], strict=True)) == [
        ("softmax", 16), ("softmax", 64), ("tssa", 16), ("tssa", 64)
    ]  # fmt: skip
    assert (table["status"] == "ok").all()
    assert table["state_mib"].tolist()[:2] == pytest.approx([2 * n * 16 * 4 / 2**20 for n in (16, 64)], abs=1e-6)
    assert table["state_mib"][2] == table["state_mib"][3]
    manifest = json.loads(path.with_suffix(".json").read_text())
    assert manifest["status"] == "complete"
    assert manifest["settings"]["mechanisms"]["tssa"] == {"name": "tssa"}
    said = capfd.readouterr().out
    assert "tssa, 16 to 64 tokens: time " in said
    assert "memory kept flat (× 1.00)" in said
    assert "memory kept not flat (× 4.00)" in said
    assert plot_table(path) == [path.with_suffix(".png")]


def test_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Softmax is not measured again; the mechanism that Ctrl-C came into is."""
    measured: list[str] = []
    usual = decoding.decoding_costs

    def interrupted(module: Any, *args: Any, **kwargs: Any) -> Any:
        measured.append(type(module).__name__)
        if len(measured) == 2:
            raise KeyboardInterrupt
        return usual(module, *args, **kwargs)

    monkeypatch.setattr(decoding, "decoding_costs", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path)
    before = pd.read_csv(tmp_path / "complexity" / "decoding-cpu.csv")
    after = pd.read_csv(run(tmp_path, resume=True))
    assert measured == ["SoftmaxAttention", "TokenStatisticsAttention", "TokenStatisticsAttention"]
    assert len(before) == 2
    pd.testing.assert_frame_equal(after.iloc[:2], before)
    assert after["attention"].tolist() == ["softmax"] * 2 + ["tssa"] * 2


def test_rows_of_what_does_not_fit_and_of_what_fails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    usual = decoding.decoding_costs

    def costs(module: Any, contexts: list[int], **kwargs: Any) -> Any:
        if "Token" in type(module).__name__:
            raise RuntimeError("the device is gone\nand more of it")
        return usual(module, contexts[:1], **kwargs)

    monkeypatch.setattr(decoding, "decoding_costs", costs)
    table = pd.read_csv(run(tmp_path, contexts=[16, 32, 64]))
    assert table["status"].tolist() == [
        "ok", "out of memory", "out of memory at a shorter context", *["failed: RuntimeError: the device is gone"] * 3
    ]  # fmt: skip
    assert table["milliseconds"].notna().tolist() == [True] + [False] * 5


@pytest.mark.parametrize(
    ("mechanism", "changes", "message"),
    [
        (
            {"name": "xca"},
            {},
            r"--attention mine: has no decode\(x, state\), token by token; these have: softmax, ",
        ),
        ({"name": "primal"}, {}, "--attention mine: the causal form needs projection: data-independent, since f"),
        ({"name": "tssa"}, {"heads": 3}, "--attention mine: dim = 16 is not a multiple of heads = 3"),
    ],
)
def test_faults_before_anything_is_measured(
    mechanism: dict[str, Any], changes: dict[str, Any], message: str, tmp_path: Path
) -> None:
    with pytest.raises(KattnError, match=message):
        run(tmp_path, {"mine": Mechanism(**mechanism), "softmax": Mechanism(name="softmax")}, **changes)
    assert not (tmp_path / "complexity").exists()


@pytest.mark.parametrize("command", [["decoding"], ["complexity", "--decode"]])
def test_the_command_line(
    command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also as an option of ``kattn complexity``, as it was: what is measured by default."""
    asked: dict[str, Any] = {}
    table = run(tmp_path)

    def measured(mechanisms: dict[str, Mechanism], **named: Any) -> Path:
        asked.update(named, mechanisms=mechanisms)
        return table

    monkeypatch.setattr(decoding, "measure_decoding", measured)
    said = kattn(capfd, *command, "--resume", "--device", "cpu", "--results", tmp_path)
    assert said.out.splitlines()[-2:] == [str(table), str(table.with_suffix(".png"))]
    mechanisms = asked.pop("mechanisms")
    assert list(mechanisms) == ["softmax", "tssa", "primal"]
    assert mechanisms["primal"].options["projection"] == "data-independent"
    assert asked == {
        "contexts": (1024, 4096, 16384, 65536), "dim": 192, "heads": 3, "batch": 1, "dtype": "float32",
        "results": tmp_path, "device": torch.device("cpu"), "seconds": 0.3, "limit": None, "resume": True,
    }  # fmt: skip
