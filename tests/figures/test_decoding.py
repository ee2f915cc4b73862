"""Whether costs of decoding are flat, and their figure."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from kattn_cli.errors import RunError
from kattn_cli.figures.decoding import draw_decoding
from kattn_cli.tables.costs import decoding_verdicts

SETTING = {"device": "cpu", "dtype": "float32", "dim": 8, "heads": 2, "batch": 1, "rounds": 9, "status": "ok"}


def row(attention: str, context: int, time: float, state: float, low: float, high: float) -> dict[str, object]:
    quartiles = {"milliseconds": time, "milliseconds_low": 0.9 * time, "milliseconds_high": 1.2 * time, "spread": 0.3}
    ratio = {"ratio": (low + high) / 2, "ratio_low": low, "ratio_high": high}
    return {
        "attention": attention,
        "context": context,
        **quartiles,
        **ratio,
        "state_mib": state,
        "peak_mib": 1,
        **SETTING,
    }


def table() -> pd.DataFrame:
    return pd.DataFrame(
        [
            row("softmax", 1024, 1, 3, 1, 1),
            row("softmax", 4096, 3, 12, 2.5, 3.5),
            row("tssa", 4096, 0.4, 0.01, 0.97, 1.04),
            row("tssa", 1024, 0.4, 0.01, 1, 1),
            row("tssa", 65536, 0.4, 0.01, 0.96, 1.049),
            row("primal", 1024, 0.5, 0.01, 1, 1),
            row("primal", 4096, 0.5, 0.0104, 0.93, 1.04),
            {**row("xca", 1024, 0.5, 0.01, 1, 1), "status": "out of memory"},
        ]
    )


def test_verdicts() -> None:
    found = decoding_verdicts(table()).set_index("attention")
    assert list(found.index) == ["softmax", "tssa", "primal"]
    assert found["time"].to_dict() == {"softmax": "not flat", "tssa": "flat", "primal": "cannot be told"}
    assert found["memory"].to_dict() == {"softmax": "not flat", "tssa": "flat", "primal": "flat"}
    assert found.loc["softmax", ["state_ratio", "peak_ratio", "time_ratio"]].tolist() == [4, 1, 3]
    assert found.loc["tssa", ["from_context", "to_context", "time_low", "time_high"]].tolist() == [
        1024,
        65536,
        0.96,
        1.049,
    ]


def test_faster_behind_a_longer_context_is_not_flat_either() -> None:
    found = decoding_verdicts(pd.DataFrame([row("tssa", 16, 1, 1, 1, 1), row("tssa", 64, 0.5, 1, 0.4, 0.6)]))
    assert found["time"].tolist() == ["not flat"]


def test_the_figure(drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path) -> None:
    assert draw_decoding(table(), tmp_path, "decoding-cpu") == tmp_path / "decoding-cpu.png"
    time, memory = drawn[0].axes
    lines = {line.get_label(): line for line in time.lines if not str(line.get_label()).startswith("_")}
    assert sorted(map(str, lines)) == ["primal", "softmax", "tssa"]
    assert np.asarray(lines["tssa"].get_xdata()).tolist() == [1024, 4096, 65536]
    assert [line.get_marker() for line in memory.lines] == ["o", "^"] * 3
    assert (time.get_xscale(), time.get_yscale(), memory.get_yscale()) == ("log", "log", "log")
    assert time.get_ylabel() == "time (ms a token)"
    apart(drawn[0])


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"mine.csv: has no measurement that went well, so there is nothing to draw"):
        draw_decoding(table().assign(status="out of memory"), tmp_path, "mine")
