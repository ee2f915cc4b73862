"""Multiples of the first model's costs, the papers' beside them, and the figures."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from kattn_cli.errors import RunError
from kattn_cli.figures.model_costs import draw_model_costs

SYM, RPC = "imagenet/symvit_tiny", "imagenet/rpc_symvit_tiny"


def row(model: str, attention: str, milliseconds: float, **more: Any) -> dict[str, Any]:
    setting = {"version": "fast", "pass": "forward", "device": "cpu", "dtype": "float32", "n": 197, "batch": 2}
    memory = {"peak_mib": 30.0, "held_mib": 20.0, "status": "ok"}
    return {
        "model": model,
        "attention": attention,
        **setting,
        **memory,
        "milliseconds_per_sample": milliseconds,
        **more,
    }


def table() -> pd.DataFrame:
    return pd.DataFrame(
        [
            row(SYM, "symmetric", 10),
            row(RPC, "rpc", 12, peak_mib=55.0),
            row(RPC, "rpc", 40, version="slow"),
            row("imagenet/tost_tiny", "tssa", 6, n=196),
            row("imagenet/deit_small", "softmax", float("nan"), status="out of memory"),
            row(SYM, "symmetric", 30, **{"pass": "training step"}),
            row(RPC, "rpc", 33, **{"pass": "training step"}),
        ]
    )


def decoders() -> pd.DataFrame:
    times = {("softmax", 4096): 100, ("softmax", 8192): 300, ("tssa", 4096): 70, ("tssa", 8192): 150}
    return pd.DataFrame([row(f"decoder/{name}", name, time, n=n) for (name, n), time in times.items()])


def test_the_figure_of_several_models(drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path) -> None:
    assert draw_model_costs(table(), tmp_path, "models-cpu") == tmp_path / "models-cpu.png"
    time, memory = drawn[0].axes
    assert [tick.get_text() for tick in time.get_yticklabels()] == [SYM, RPC, f"{RPC} (slow)", "imagenet/tost_tiny"]
    assert [line.get_marker() for line in time.lines] == ["o"] * 4 + ["^"] * 2
    assert [np.asarray(line.get_xdata()).tolist() for line in memory.lines] == [[50], [75], [50], [50], [50], [50]]
    apart(drawn[0])


def test_the_figure_over_lengths(drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path) -> None:
    slow = decoders().assign(version="slow")
    draw_model_costs(pd.concat([decoders(), slow]), tmp_path, "models-cpu")
    time = drawn[0].axes[0]
    assert [line.get_label() for line in time.lines] == [
        "decoder/softmax", "decoder/tssa", "decoder/softmax (slow)", "decoder/tssa (slow)"
    ]  # fmt: skip
    assert [line.get_linestyle() for line in time.lines] == ["-", "-", "--", "--"]
    assert np.asarray(time.lines[1].get_ydata()).tolist() == [70, 150]
    apart(drawn[0])


def test_nothing_to_draw(tmp_path: Path) -> None:
    with pytest.raises(RunError, match=r"mine.csv: has no measurement that went well"):
        draw_model_costs(table().assign(status="failed"), tmp_path, "mine")
