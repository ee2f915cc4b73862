"""One style for all figures: formats, type, room for captions and legends, colours."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from kattn_cli.figures import style
from kattn_cli.figures.style import (
    COLOURS,
    LOOKS,
    OTHERS,
    Palette,
    from_zero,
    leftmost,
    legend_above,
    log_if_wide,
    panels,
    save,
    use,
)

BEGINS: dict[Any, bytes] = {"pdf": b"%PDF", "png": b"\x89PNG", "svg": b"<?xml"}
LONG = "a caption with the names of many runs, their seeds and what the bands are of; " * 6


def one_line(image: bool = False) -> Figure:
    figure, (axes,) = panels(1)
    axes.imshow(np.eye(3)) if image else axes.plot([0, 1], [0, 1], label="a")
    return figure


@pytest.mark.parametrize(
    ("formats", "returned"), [(("pdf", "png"), "png"), (("svg", "pdf"), "svg"), (("png", "svg", "pdf"), "png")]
)
def test_every_format_that_is_asked_for_is_written(formats: Any, returned: str, tmp_path: Path) -> None:
    use("paper", formats)
    assert save(one_line(), tmp_path / "new", "x", "what") == tmp_path / "new" / f"x.{returned}"
    assert sorted(path.name for path in (tmp_path / "new").iterdir()) == sorted(f"x.{one}" for one in formats)
    for one in formats:
        assert (tmp_path / "new" / f"x.{one}").read_bytes().startswith(BEGINS[one])


def test_a_pdf_is_drawn_in_vectors(tmp_path: Path) -> None:
    use("paper", ["pdf"])
    assert b"/Subtype /Image" not in save(one_line(), tmp_path, "line", "").read_bytes()
    assert b"/Subtype /Image" in save(one_line(image=True), tmp_path, "image", "").read_bytes()


def test_equal_figures_are_equal_files(tmp_path: Path) -> None:
    use("paper", ["pdf", "svg"])
    for folder in ("a", "b"):
        save(one_line(), tmp_path / folder, "x", "what")
    for suffix in ("pdf", "svg"):
        assert (tmp_path / "a" / f"x.{suffix}").read_bytes() == (tmp_path / "b" / f"x.{suffix}").read_bytes()


def test_slides_have_larger_type_and_thicker_lines_for_their_width() -> None:
    shares = {}
    for look in ("paper", "slides"):
        use(look)
        figure = one_line()
        width = figure.get_figwidth()
        (line,) = figure.axes[0].lines
        shares[look] = [float(figure.axes[0].xaxis.label.get_fontsize()) / width, line.get_linewidth() / width]
        assert figure.get_figwidth() / figure.get_figheight() == pytest.approx(16 / 9, rel=0.05)
        plt.close(figure)
    assert all(slides > 1.25 * paper for paper, slides in zip(*shares.values(), strict=True))
    assert style.look is LOOKS["slides"]
    use()
    assert style.look is LOOKS["paper"]
    assert style.formats == ("pdf", "png")


@pytest.mark.parametrize("style", ["paper", "slides"])
@pytest.mark.parametrize("lines", [3, 12])
@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_caption_and_legend_never_touch_the_panels(
    style: str, lines: int, count: int, drawn: list[Figure], apart: Callable[[Figure], None], tmp_path: Path
) -> None:
    use(style)
    figure, every = panels(count)
    for axes in every:
        for index in range(lines):
            axes.plot([0, 1], [0, index], label=f"a rather long name {index}")
        axes.set(xlabel="an axis\nof two lines", ylabel="of a unit (%)", title="title")
        axes.set_xticks([0, 1], ["a turned tick", "another"], rotation=30)
    legend_above(figure, *every)
    save(figure, tmp_path, "x", LONG)
    apart(drawn[0])


def test_four_panels_make_two_rows() -> None:
    places = {}
    for count in (1, 2, 3, 4, 5):
        figure, every = panels(count)
        assert len(every) == count
        places[count] = [every.index(one) for one in leftmost(every)]
        plt.close(figure)
    assert places == {1: [0], 2: [0], 3: [0], 4: [0, 2], 5: [0, 3]}


def test_a_mechanism_of_one_s_own_has_its_colour_whatever_else_is_drawn() -> None:
    alone = Palette().line("mine.py:A", "a")["color"]
    after = Palette()
    first = after.line("mine.py:B", "b")["color"]
    assert after.line("mine.py:A", "a")["color"] == alone
    assert {alone, first} < set(OTHERS)
    assert alone != first


def test_no_line_is_too_pale_for_white_paper() -> None:
    """WCAG's contrast with white; that of matplotlib's default orange is 2.3."""
    for colour in (*COLOURS.values(), *OTHERS):
        channels = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(colour)]
        assert 1.05 / (np.dot([0.2126, 0.7152, 0.0722], channels) + 0.05) > 1.9, colour


@pytest.mark.parametrize(
    ("values", "scale", "bottom"),
    [
        ([1.0, 50.0], "linear", 0),
        ([1.0, 500.0], "log", None),
        ([-1.0, 500.0], "linear", None),
        ([np.nan], "linear", None),
    ],
)
def test_a_wide_range_is_logarithmic(values: list[float], scale: str, bottom: float | None) -> None:
    figure, (axes,) = panels(1)
    axes.plot(values)
    log_if_wide(axes, values)
    assert axes.get_yscale() == scale
    assert (axes.get_ylim()[0] == 0) == (bottom == 0)
    plt.close(figure)


def test_from_zero_leaves_room_above_the_highest_of_the_row() -> None:
    figure, (left, right) = panels(2, sharey=True)
    left.plot([5, 6])
    right.plot([7, 10])
    from_zero(left)
    assert right.get_ylim() == pytest.approx((0, 10.6))
    plt.close(figure)
