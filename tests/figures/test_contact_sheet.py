"""The contact sheet has every picture once, with its values."""

from __future__ import annotations

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest

from kattn_cli.figures import contact_sheet
from kattn_cli.figures.contact_sheet import draw_contact_sheet, tiled


@pytest.mark.parametrize("channels", [1, 3])
def test_rows_are_types_and_columns_severities(channels: int) -> None:
    draw = np.random.default_rng(0)
    pictures = [[draw.random((24, 36, channels)) for _ in range(6)] for _ in range(2)]
    sheet = tiled(pictures, 3)
    assert sheet.shape == (2 * 27 - 3, 6 * 39 - 3, 3)
    for row, parts in enumerate(pictures):
        for column, picture in enumerate(parts):
            place = sheet[row * 27 : row * 27 + 24, column * 39 : column * 39 + 36]
            assert np.array_equal(place, np.broadcast_to(picture, (24, 36, 3)))
    assert (sheet == 1).all(-1).sum() == sheet[..., 0].size - 12 * 24 * 36


def test_names_stand_beside_their_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[plt.Figure] = []

    def keep(figure: plt.Figure, folder: Path, name: str, caption: str) -> Path:
        drawn.append(figure)
        return folder / name

    monkeypatch.setattr(contact_sheet, "save", keep)
    pictures = {name: [np.zeros((8, 8, 1))] * 6 for name in ("shot_noise", "fog")}
    draw_contact_sheet(pictures, tmp_path, "what it is of")
    (axes,) = drawn[0].axes
    assert [label.get_text() for label in axes.get_yticklabels()] == ["shot\nnoise", "fog"]
    assert axes.get_yticks().tolist() == [4, 13]
    assert [label.get_text() for label in axes.get_xticklabels()] == [
        "clean",
        *(f"severity {severity}" for severity in range(1, 6)),
    ]
    plt.close(drawn[0])


def test_files(tmp_path: Path) -> None:
    path = draw_contact_sheet({"fog": [np.zeros((8, 8, 1))] * 6}, tmp_path, "what it is of")
    assert path == tmp_path / "corruptions.png"
    assert path.with_suffix(".pdf").exists()
