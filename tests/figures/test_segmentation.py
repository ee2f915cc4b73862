"""Which rows make the numbers of Table 6, and what is drawn of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from matplotlib.image import imread

from kattn_cli.figures.segmentation import Predicted, draw_segmentation, draw_sheet
from kattn_cli.tables.values import segmentation_frame, segmentation_summary


def row(label: str, seed: int, severity: int, iou: float, corruption: str = "", **changes: object) -> dict[str, object]:
    measured = {"mean_iou": iou, "mean_accuracy": iou + 10, "pixel_accuracy": 80.0, "images": 50, "split": "test"}
    of_run = {
        "label": label,
        "mechanism": label,
        "run_seed": seed,
        "folder": f"{label}/{seed}",
        "checkpoint": "best",
        "weights": f"{label}{seed}",
    }
    how = {"parameters": "imagenet-c" if corruption else "", "seed": 0 if corruption else ""}
    return {**measured, **of_run, **how, "severity": severity, "corruption": corruption, **changes}


def table(seeds: int = 2) -> pd.DataFrame:
    rows = []
    for label, base in (("softmax", 40.0), ("rpc", 42.0)):
        for seed in range(seeds):
            rows.append(row(label, seed, 0, base + seed))
            for name, lower in (("fog", 10.0), ("snow", 20.0)):
                rows += [row(label, seed, k, base - lower - k, name) for k in range(1, 6)]
            rows.append(row(label, seed, 3, 0.0, "frost"))
    return pd.DataFrame(rows)


def test_corrupted_numbers_are_means_over_complete_types_and_severities() -> None:
    found = segmentation_summary(segmentation_frame(table())).set_index(["label", "run_seed"])
    one = found.loc[("rpc", 1)]
    assert (one["mean_iou"], one["mean_accuracy"]) == (43.0, 53.0)
    assert one["corrupted_mean_iou"] == pytest.approx(42 - 15 - 3)
    assert one["corrupted_mean_accuracy"] == pytest.approx(42 - 15 - 3 + 10)
    assert (one["types"], one["images"]) == (2, 50)


def test_rows_of_fewer_images_or_earlier_weights_do_not_mix_with_the_rest() -> None:
    rows = pd.concat(
        [
            pd.DataFrame([row("rpc", 0, 0, 1.0, weights="old"), row("rpc", 0, 1, 1.0, "fog", weights="old")]),
            table(),
            pd.DataFrame([row("rpc", 0, 0, 99.0, images=5), row("rpc", 0, 1, 99.0, split="validation")]),
        ],
        ignore_index=True,
    )
    found = segmentation_summary(segmentation_frame(rows)).set_index(["label", "run_seed"])
    assert found.loc[("rpc", 0), "mean_iou"] == 42.0
    assert found.loc[("rpc", 0), "corrupted_mean_iou"] == pytest.approx(24.0)


def test_clean_rows_alone_are_told_too(tmp_path: Path) -> None:
    rows = table()
    clean = rows[rows["severity"] == 0]
    frame = segmentation_frame(pd.concat([clean, pd.DataFrame([row("rpc", 0, 0, 99.0, images=5)])]))
    found = segmentation_summary(frame)
    assert found["corrupted_mean_iou"].isna().all()
    assert found["types"].tolist() == [0] * 4
    assert sorted(found["mean_iou"]) == [40.0, 41.0, 42.0, 43.0], "of the most images"
    assert draw_segmentation(frame, tmp_path).name == "segmentation_severity.png"


def test_no_rows_at_all() -> None:
    assert segmentation_frame(pd.DataFrame()).empty


@pytest.mark.parametrize("seeds", [1, 3])
def test_a_line_for_each_label(tmp_path: Path, seeds: int) -> None:
    picture = imread(draw_segmentation(segmentation_frame(table(seeds)), tmp_path))
    assert picture.std() > 0.05


def test_a_sheet_shows_image_labels_and_what_is_told(tmp_path: Path) -> None:
    labels = np.zeros((8, 8), dtype=np.int64)
    labels[2:6, 2:6] = 1
    labels[0] = 255
    pictures = [Predicted(np.full((8, 8, channels), 0.5), labels, 1 - (labels == 1)) for channels in (1, 3)]
    path = draw_sheet(pictures, ("ground", "thing"), tmp_path, "of a test")
    assert path == tmp_path / "segmentation.png"
    picture = imread(path)[..., :3]
    for colour in ((0x1F, 0x77, 0xB4), (0xAE, 0xC7, 0xE8)):
        assert (np.abs(picture - np.array(colour) / 255).max(-1) < 0.02).mean() > 0.02
    many = [f"class {number}" for number in range(150)]
    assert draw_sheet(pictures, many, tmp_path, "of many").is_file()
