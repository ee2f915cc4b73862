"""Exponents, tables and figures of ``kattn complexity``, from costs made up to follow power laws."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import product
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from matplotlib.figure import Figure

from kattn_cli.figures.complexity import draw_complexity
from kattn_cli.figures.style import COLOURS
from kattn_cli.statistics.intervals import power_law
from kattn_cli.tables.complexity import exponents, not_counted, shortfalls, summary

SIZES = (64, 128, 256, 512)
EXPONENT = {("softmax", "fast"): 2, ("softmax", "slow"): 2, ("tssa", "fast"): 1, ("tssa#2", "fast"): 1}


def row(attention: str, version: str, n: int, **other: Any) -> dict[str, Any]:
    time = n ** EXPONENT[attention, version] * (2 if version == "slow" else 1)
    sizes = {"dtype": "float32", "causal": "no", "dim": 8, "heads": 2, "batch": 1, "n": n, "device": "cpu"}
    costs = {"milliseconds": time, "spread": time / 10, "repeats": 9, "peak_mib": n / 7, "status": "ok"}
    flops = {"forward_flops": 1e3 * n, "flops_counted": "formula", "matrix_product_flops": 750 * n}
    words = {"options": "eta=2" if "#" in attention else "", "not_counted": "mul softmax", "pass": "forward+backward"}
    return {"attention": attention, "version": version, **sizes, **costs, **flops, **words, **other}


def table(**other: Any) -> pd.DataFrame:
    return pd.DataFrame([row(*key, n, **other) for key, n in product(EXPONENT, SIZES)])


def test_exponents_of_each_version_and_setting() -> None:
    costs = pd.concat([table(), table(dim=16, milliseconds=3.0)])
    fitted = exponents(costs, fit_from=128).set_index(["attention", "dim"])
    assert fitted.loc[("softmax (slow)", 8), "milliseconds_exponent"] == pytest.approx(2)
    assert fitted.loc[("tssa", 8), "milliseconds_exponent"] == pytest.approx(1)
    assert fitted.loc[("tssa", 16), "milliseconds_exponent"] == pytest.approx(0)
    assert fitted.loc[("tssa", 8), "peak_mib_exponent"] == pytest.approx(1)
    assert set(fitted["from_n"]) == {128}
    assert set(fitted["points"]) == {3}


def test_intervals_are_those_of_the_fit() -> None:
    times = [1.0, 2.1, 3.8, 8.5]
    costs = pd.DataFrame([row("tssa", "fast", n, milliseconds=time) for n, time in zip(SIZES, times, strict=True)])
    (fit,) = exponents(costs, fit_from=64).to_dict("records")
    columns = ("milliseconds_exponent", "milliseconds_exponent_low", "milliseconds_exponent_high")
    assert tuple(fit[column] for column in columns) == pytest.approx(power_law(SIZES, times))
    assert fit["milliseconds_exponent_low"] < fit["milliseconds_exponent"] - 0.01
    (half,) = exponents(costs).to_dict("records")
    assert half["points"] == 2
    assert math.isnan(half["milliseconds_exponent_low"])


def test_the_table_that_is_printed() -> None:
    costs = table()
    printed = summary(costs, exponents(costs, fit_from=64)).set_index("attention")
    assert list(printed.columns) == ["pass", "N", "ms", "IQR", "MiB", "time / softmax", "time in N", "memory in N"]
    slow = printed.loc["softmax (slow)"]
    assert (slow["N"], slow["ms"], slow["time / softmax"]) == ("512", f"{2 * 512**2:.4g}", "2")
    assert slow["time in N"] == "2.00 (2.00 to 2.00)"
    several = summary(pd.concat([costs, table(causal="yes")]), exponents(costs))
    assert several["causal"].tolist() == ["no"] * 4 + ["yes"] * 4


def test_what_did_not_go_well_is_said_in_a_line() -> None:
    costs = pd.DataFrame(
        [
            row("softmax", "slow", 64),
            row("softmax", "slow", 128, status="out of memory"),
            row("softmax", "slow", 256, status="out of memory at a smaller size"),
            row("tssa", "fast", 64, status="failed: ValueError: no"),
            row("tssa", "fast", 128, status="failed: ValueError: no"),
            row("tssa#2", "fast", 64, status="over 2 s a call"),
            row("softmax", "fast", 64, status="no causal form"),
            row("tssa", "fast", 64, status="no causal form"),
        ]
    )
    assert shortfalls(costs) == [
        "softmax, tssa: no causal form",
        "softmax (slow), forward+backward: out of memory at N = 128; larger ones were not tried",
        "tssa, forward+backward: failed: ValueError: no at N = 64, 128",
        "tssa#2, forward+backward: over 2 s a call at N = 64; larger ones were not tried",
    ]


def test_what_was_not_counted() -> None:
    own = row("tssa", "fast", 512, flops_counted="matrix products only", not_counted=math.nan)
    more = row("tssa#2", "fast", 512, matrix_product_flops=513000)
    printed = not_counted(pd.DataFrame([row("softmax", "fast", 64), row("softmax", "slow", 512), own, more]))
    assert printed.to_dict("records") == [
        {"attention": "softmax", "C": "8", "N": "512", "GFLOP by formula": "0.000512",
         "by torch's counter": "0.000384", "unseen": "25 %", "counted as 0": "mul, softmax"},
        {"attention": "tssa", "C": "8", "N": "512", "GFLOP by formula": "no formula",
         "by torch's counter": "0.000384", "unseen": "unknown", "counted as 0": "nothing"},
        {"attention": "tssa#2", "C": "8", "N": "512", "GFLOP by formula": "0.000512",
         "by torch's counter": "0.000513", "unseen": "none", "counted as 0": "mul, softmax"},
    ]  # fmt: skip


def test_a_figure_for_each_setting_and_pass(drawn: list[Figure], tmp_path: Path) -> None:
    settings = product(("no", "yes"), (8, 16), ("forward", "forward+backward"))
    costs = pd.concat([table(**{"causal": causal, "dim": dim, "pass": what}) for causal, dim, what in settings])
    names = [path.stem for path in draw_complexity(costs, tmp_path, "cpu")]
    over_n = ["cpu_dim8", "cpu_dim16", "cpu_causal_dim8", "cpu_causal_dim16"]
    both = [f"{name}{suffix}" for name in [*over_n, "cpu_width", "cpu_width_causal"] for suffix in ("", "_inference")]
    assert names == both
    width = drawn[names.index("cpu_width")].axes[0]
    assert width.get_xlabel() == "width C"
    assert [list(line.get_xdata()) for line in width.lines] == [[8, 16]] * 4  # type: ignore[arg-type]
    assert "N = 512" in drawn[names.index("cpu_width_causal_inference")]._supxlabel.get_text()  # type: ignore[attr-defined]


def test_the_width_is_drawn_at_the_largest_shared_size(drawn: list[Figure], tmp_path: Path) -> None:
    costs = pd.concat([table(), table(dim=16).query("n < 512")])
    draw_complexity(costs, tmp_path, "cpu")
    first = drawn[-1].axes[0].lines[0]
    assert list(first.get_ydata()) == [256**2, 256**2]  # type: ignore[arg-type]


def test_versions_share_a_colour_and_options_have_markers(
    drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path
) -> None:
    assert draw_complexity(table(), tmp_path, "cpu")[0] == tmp_path / "cpu.png"
    (figure,) = drawn
    lines = {str(line.get_label()).partition("  ")[0]: line for line in figure.axes[0].lines}
    assert list(lines) == ["softmax", "softmax (slow)", "tssa", "tssa#2"]
    looks = {name: (line.get_color(), line.get_linestyle(), line.get_marker()) for name, line in lines.items()}
    assert looks["softmax"] == (COLOURS["softmax"], "-", "o")
    assert looks["softmax (slow)"] == (COLOURS["softmax"], "--", "o")
    assert looks["tssa#2"] == (COLOURS["tssa"], "-", "s")
    assert "tssa#2: eta=2" in figure._supxlabel.get_text()  # type: ignore[attr-defined]
    assert [text.get_text() for text in figure.axes[0].get_xticklabels()] == ["64", "128", "256", "512"]
    apart(figure)


def test_rows_of_an_older_table(drawn: list[Figure], tmp_path: Path) -> None:
    older = table().query("version == 'fast'").drop(columns=["version", "causal", "options", "repeats", "not_counted"])
    assert draw_complexity(older, tmp_path, "cpu") == [tmp_path / "cpu.png"]
    assert drawn[0].axes[0].lines[0].get_label() == "softmax  2.00, 1.00"
    fitted = exponents(older)
    assert fitted["attention"].tolist() == ["softmax", "tssa", "tssa#2"]
    assert fitted["milliseconds_exponent"].tolist() == pytest.approx([2, 1, 1])


def test_what_did_not_fit_is_not_drawn(drawn: list[Figure], tmp_path: Path) -> None:
    costs = table()
    missing = (costs["version"] == "slow") & (costs["n"] > 128)
    costs["status"] = costs["status"].mask(missing, "out of memory")
    costs["milliseconds"] = costs["milliseconds"].mask(missing)
    draw_complexity(costs, tmp_path, "cpu")
    assert [len(line.get_xdata()) for line in drawn[0].axes[0].lines] == [4, 2, 4, 4]  # type: ignore[arg-type]


def test_one_size_at_several_widths_is_drawn_over_the_width_alone(drawn: list[Figure], tmp_path: Path) -> None:
    costs = pd.concat([table(), table(dim=16)])
    assert [path.stem for path in draw_complexity(costs[costs["n"] == 64], tmp_path, "cpu")] == ["cpu_width"]
    assert [path.stem for path in draw_complexity(table().query("n == 64"), tmp_path, "cpu")] == ["cpu"], "points"
