"""Pathfinder: labels against another checker, drawing against geometry, the cache, Long-Range Arena's own pictures."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import joblib  # type: ignore[import-untyped]
import numpy as np
import pytest
import torch
from PIL import Image
from scipy.sparse.csgraph import connected_components

from kattn_cli.data.sets.pathfinder import Pathfinder, data_set, generate
from kattn_cli.data.sets.pathfinder.contours import Dice, Picture, arranged
from kattn_cli.data.sets.pathfinder.generate import Wanted, drawn, pictures
from kattn_cli.data.sets.pathfinder.scene import DIRECTIONS, SCENES, Scene, turns
from kattn_cli.errors import DataError

SMALL: dict[str, Any] = {"contour_length": 6, "train": 8, "choose_by": 3, "test": 4}


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "cache"))


def some(size: int, count: int, contour_length: int = 14) -> list[Picture]:
    return list(pictures(Wanted(size, contour_length, count, split=0, seed=0), 0, count))


def connected(picture: Picture, draw: np.random.Generator) -> bool:
    """Whether the dashes, shuffled and turned at random, link one marker to the other.

    Two dashes are linked where an end of one is within a straight contour's gap of an end of the other, and from end
    to end they go on in about the same direction.
    """
    dashes = draw.permutation(np.concatenate(picture.snakes))
    turned = draw.random(len(dashes)) < 0.5
    dashes[turned] = dashes[turned, ::-1]
    links = np.zeros((len(dashes), len(dashes)), dtype=bool)
    for end in (0, 1):
        for other in (0, 1):
            gaps = np.linalg.norm(dashes[:, None, end] - dashes[None, :, other], axis=-1)
            out, on = dashes[:, end] - dashes[:, 1 - end], dashes[:, 1 - other] - dashes[:, other]
            links |= (gaps < 2 * picture.gap + 0.1) & (out @ on.T > -0.01)
    np.fill_diagonal(links, False)
    assert links.sum(0).max() <= 2
    _, contour = connected_components(links, directed=False)
    tips = [np.linalg.norm(dashes - marker, axis=-1).min(1) for marker in picture.markers]
    assert max(tip.min() for tip in tips) < 1e-9
    return bool(contour[tips[0].argmin()] == contour[tips[1].argmin()])


@pytest.mark.parametrize(
    ("size", "count", "contour_length"), [(32, 200, 14), (32, 100, 6), (32, 50, 9), (64, 4, 14), (128, 24, 14)]
)
def test_labels_agree_with_another_checker(size: int, count: int, contour_length: int) -> None:
    made = some(size, count, contour_length)
    draw = np.random.default_rng(1)
    assert [connected(picture, draw) for picture in made] == [bool(picture.label) for picture in made]
    assert sum(picture.label for picture in made) == count // 2


def away(points: np.ndarray, dashes: np.ndarray) -> np.ndarray:
    """From each of ``(P, 2)`` to each of ``(N, 2, 2)``, by trying points on the dash."""
    along = dashes[:, :1] + np.linspace(0, 1, 41)[:, None] * (dashes[:, 1:] - dashes[:, :1])
    return np.linalg.norm(points[:, None, None] - along, axis=-1).min(-1)


@pytest.mark.parametrize("size", [32, 128])
def test_contours_keep_apart(size: int) -> None:
    scene = SCENES[size]
    for picture in some(size, 12):
        dashes = np.concatenate(picture.snakes)
        assert dashes.min() >= 1
        assert dashes.max() <= size - 1
        place = np.concatenate([100 * number + np.arange(len(snake)) for number, snake in enumerate(picture.snakes)])
        near = np.abs(place[:, None] - place) <= 1
        between = away(dashes.reshape(-1, 2), dashes).reshape(len(dashes), 2, -1).min(1)
        assert between[~near].min() > 2 * picture.gap + 0.2
        np.testing.assert_allclose(np.linalg.norm(dashes[:, 1] - dashes[:, 0], axis=1), scene.paddle_length, atol=0.04)
        tips = np.stack([snake[at] for snake in picture.snakes[:2] for at in ((0, 0), (-1, 1))])
        to_tips = away(tips, dashes)
        to_tips[np.arange(4), [0, 13, 14, 27]] = np.inf
        assert to_tips.min() > scene.marker_radius + scene.paddle_width / 2 + 0.4
        assert {len(snake) for snake in picture.snakes[:2]} == {14}
        assert {len(snake) for snake in picture.snakes[2:]} <= {4}
        assert scene.distractor_paddles // 4 + 2 >= len(picture.snakes) >= 2


@pytest.mark.parametrize("size", [32, 128])
def test_drawn_where_it_should_be(size: int) -> None:
    scene = SCENES[size]
    pixels = np.random.default_rng(0).permutation(np.indices((size, size)).reshape(2, -1).T)[:2000]
    for picture in some(size, 4):
        image = drawn(picture, scene)
        assert image.shape == (size, size)
        assert image.dtype == np.uint8
        grey = image[pixels[:, 0], pixels[:, 1]]
        to_dash = away(pixels + 0.5, np.concatenate(picture.snakes)).min(1)
        to_disc = np.linalg.norm(pixels[:, None] + 0.5 - picture.markers, axis=-1).min(1)
        assert not grey[(to_dash > scene.paddle_width / 2 + 0.9) & (to_disc > scene.marker_radius + 0.9)].any()
        assert (grey[to_disc < scene.marker_radius - 0.8] == 255).all()
        assert grey[to_dash < 0.2].min() > 30
        assert grey[to_dash < 0.2].mean() > 120
        lit = (image == 255).sum() / 2
        assert np.pi * (scene.marker_radius - 1) ** 2 < lit < np.pi * scene.marker_radius**2


def test_the_markers_do_not_give_the_label_away_by_their_distance() -> None:
    made = some(32, 300)
    distances = np.array([np.linalg.norm(picture.markers[0] - picture.markers[1]) for picture in made])
    labels = np.array([picture.label for picture in made])
    right = [np.mean((distances > limit) == labels) for limit in distances]
    assert max(*right, *(1 - share for share in right)) < 0.6


def test_turns_have_linsleys_weights() -> None:
    for continuity in (1.0, 1.8):
        found = np.array(turns(continuity)) * 2 * np.pi / DIRECTIONS
        assert np.abs(found).max() <= np.pi / 2 / continuity
        angles = np.linspace(-np.pi / 2, np.pi / 2, 20_001) / continuity
        weights = np.cos(angles * continuity) ** 2
        assert found.var() == pytest.approx(np.average(angles**2, weights=weights), rel=0.02)
        assert found.mean() == pytest.approx(0, abs=1e-12)


def test_splits() -> None:
    source = Pathfinder(**SMALL)
    facts = source.facts()
    assert (facts.classes, facts.seq_len, facts.vocabulary, facts.own_validation) == (2, 1024, 256, True)
    splits = source.load()
    assert {name: len(split) for name, split in splits.items()} == {"train": 8, "validation": 3, "test": 4}
    assert {name: int(split.labels.sum()) for name, split in splits.items()} == {"train": 4, "validation": 2, "test": 2}
    rows = torch.cat([split.values for split in splits.values()])
    assert len(torch.unique(rows, dim=0)) == 15
    for split in splits.values():
        assert split.values.shape == (len(split), 1024)
        assert split.values.dtype == torch.uint8
        assert split.lengths.tolist() == [1024] * len(split)
        assert split.labels.dtype == torch.int64
    first = next(pictures(Wanted(32, 6, 8, split=0, seed=0), 0, 8))
    assert splits["train"].values[0].tolist() == drawn(first, SCENES[32]).ravel().tolist()
    batch, labels = splits["test"].take(torch.tensor([2, 0]))
    assert batch.mask is None
    assert batch.values.tolist() == splits["test"].values[[2, 0]].tolist()
    assert labels.tolist() == splits["test"].labels[[2, 0]].tolist()


def test_path_x() -> None:
    splits = Pathfinder(size=128, train=2, choose_by=2, test=2).load()
    assert splits["train"].values.shape == (2, 16384)
    assert Pathfinder(size=128).facts().seq_len == 16384


def test_kept_and_made_again_where_cut_short(monkeypatch: pytest.MonkeyPatch) -> None:
    source = Pathfinder(**SMALL)
    assert [check.status for check in source.files()] == ["not generated yet"] * 3
    assert source.missing() == ""
    source.fetch()
    assert [check.status for check in source.files()] == ["ok"] * 3
    path = source.files()[0].path
    whole = path.read_bytes()
    for damaged in (whole[: len(whole) // 2], b""):
        path.write_bytes(damaged)
        source.load()
        assert path.read_bytes() == whole
    other = Pathfinder(**SMALL, seed=1)
    assert other.load()["train"].values.tolist() != source.load()["train"].values.tolist()
    monkeypatch.setattr(data_set, "write", lambda *_: pytest.fail("generated again"))
    split = source.load()["train"]
    split.values[0] = 7
    assert path.read_bytes() == whole
    for changed in ({"seed": 2}, {"contour_length": 7}, {"size": 64}, {"train": 10}):
        assert Pathfinder(**(SMALL | changed)).files()[0].path != path


@pytest.mark.parametrize("count", [10, 22])
def test_the_same_by_one_process_and_by_many(count: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(generate, "CHUNK", 4)
    wanted = Wanted(32, 6, count, split=1, seed=3)
    with joblib.parallel_config(backend="threading"):
        generate.write(tmp_path / "many.npy", wanted)
    parts = [generate.chunk(wanted, start, min(4, count - start)) for start in range(0, count, 4)]
    found = np.load(tmp_path / "many.npy")
    assert found.tolist() == np.concatenate(parts).tolist()
    assert found[:, -1].sum() == count / 2


def test_contours_that_find_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kattn_cli.data.sets.pathfinder.contours.TRIES", 2)
    with pytest.raises(DataError) as caught:
        Pathfinder(**(SMALL | {"contour_length": 30})).load()
    assert str(caught.value) == (
        "pathfinder: two contours of 30 paddles found no room in 32 × 32 pixels in 2 tries; give a smaller "
        "data.contour_length"
    )


def test_the_first_picture_stays_as_it_is() -> None:
    picture = arranged(SCENES[32], 6, 1, Dice(np.random.default_rng(0)))
    assert (picture.markers * 64).astype(int).tolist() == [[1059, 1026], [1964, 590]]


def write_lra(root: Path, count: int = 20) -> tuple[np.ndarray, list[int]]:
    """Pictures in the layout of Long-Range Arena's release, in two lists; their pixels and labels in that order."""
    folder = root / "pathfinder32" / "curv_contour_length_14"
    pixels = np.random.default_rng(0).integers(0, 256, (count, 32, 32), dtype=np.uint8)
    labels = [number * 7 % 3 % 2 for number in range(count)]
    (folder / "metadata").mkdir(parents=True)
    for part, rows in ((2, range(count // 2)), (10, range(count // 2, count))):
        (folder / "imgs" / str(part)).mkdir(parents=True)
        lines = []
        for row in rows:
            Image.fromarray(pixels[row]).save(folder / "imgs" / str(part) / f"sample_{row}.png")
            lines.append(f"imgs/{part} sample_{row}.png {row} {labels[row]} 1.8 14 4 5 1.5 1 1\n")
        (folder / "metadata" / f"{part}.npy").write_text("".join(lines))
    return pixels, labels


@pytest.mark.parametrize("inside", ["", "pathfinder32"])
def test_long_range_arenas_own_pictures(inside: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pixels, labels = write_lra(tmp_path)
    source = Pathfinder(root=str(tmp_path / inside))
    assert source.missing() == ""
    assert [(check.path.name, check.status) for check in source.files()] == [("2.npy", "ok"), ("10.npy", "ok")]
    splits = source.load()
    for name, rows in (("train", slice(0, 16)), ("validation", slice(16, 18)), ("test", slice(18, 20))):
        split = splits[name]  # type: ignore[index]
        assert split.values.tolist() == pixels[rows].reshape(-1, 1024).tolist()
        assert split.labels.tolist() == labels[rows]
    monkeypatch.setattr(data_set, "rows", lambda *_: pytest.fail("decoded again"))
    assert torch.equal(source.load()["test"].values, splits["test"].values)


def test_an_empty_picture_is_left_out(tmp_path: Path) -> None:
    pixels, _ = write_lra(tmp_path)
    (tmp_path / "pathfinder32/curv_contour_length_14/imgs/2/sample_0.png").write_bytes(b"")
    splits = Pathfinder(root=str(tmp_path)).load()
    assert [len(split) for split in splits.values()] == [15, 2, 2]
    assert splits["train"].values[0].tolist() == pixels[1].ravel().tolist()


@pytest.mark.parametrize(
    ("file", "content", "fault"),
    [
        ("imgs/2/sample_3.png", None, "metadata/2.npy, line 4: there is no file {}/imgs/2/sample_3.png"),
        ("imgs/2/sample_3.png", b"not a picture", "imgs/2/sample_3.png: cannot be read: not an image"),
        ("metadata/2.npy", b"imgs/2 sample_0.png 0\n", "metadata/2.npy, line 1: expected folder, name, number and"),
        ("metadata/2.npy", b"imgs/2 sample_0.png 0 2\n", "metadata/2.npy, line 1: expected folder, name, number and"),
        ("metadata/2.npy", b"\x93NUMPY\xff", "metadata/2.npy: cannot be read as text: "),
    ],
)
def test_bad_pictures(file: str, content: bytes | None, fault: str, tmp_path: Path) -> None:
    write_lra(tmp_path)
    folder = tmp_path / "pathfinder32" / "curv_contour_length_14"
    if content is None:
        (folder / file).unlink()
    else:
        (folder / file).write_bytes(content)
    with pytest.raises(DataError) as caught:
        Pathfinder(root=str(tmp_path)).load()
    assert str(caught.value).startswith(f"{folder}/{fault.format(folder)}")


def test_pictures_of_another_size(tmp_path: Path) -> None:
    write_lra(tmp_path)
    (tmp_path / "pathfinder32").rename(tmp_path / "pathfinder64")
    with pytest.raises(DataError, match=r"sample_0.png: has 32 × 32 pixels, not 64 × 64$"):
        Pathfinder(root=str(tmp_path), size=64).load()


def test_nothing_there(tmp_path: Path) -> None:
    source = Pathfinder(root=str(tmp_path), contour_length=9)
    expected = tmp_path / "pathfinder32" / "curv_contour_length_9" / "metadata" / "0.npy"
    assert source.missing() == f"there is no file {expected}; {Pathfinder.how_to_get}"
    assert [(check.path, check.status) for check in source.files()] == [(expected, "missing")]
    with pytest.raises(DataError, match=r"^pathfinder: there is no file"):
        source.load()
    with pytest.raises(ValueError, match=r"^data.contour_length: Long-Range Arena has pictures of 6, 9, 14, not of 12"):
        Pathfinder(root=str(tmp_path), contour_length=12)


def test_values_of_long_range_arena() -> None:
    assert SCENES[32] == Scene(32, 2, 0.5, (1,), 1.5, 1.0, 7, 20, 1.5, 4)
    assert SCENES[128].gaps == (2, 3)
