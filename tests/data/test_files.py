"""Images on disk: the view of evaluation, the same stream from any number of workers, and images that are broken."""

from __future__ import annotations

import errno
import os
import random
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from image_files import encoded, picture, truncated, write_picture
from PIL import Image
from timm.data import create_transform
from torch import Tensor
from torchvision.transforms.functional import pil_to_tensor

from kattn_cli.data.images import MemorySplit
from kattn_cli.data.reading import files
from kattn_cli.data.reading.encoded import Corruption, Unreadable, open_image, paths_of
from kattn_cli.data.reading.files import FileDataSet, FileSplit
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection

SIZES = [(12, 12), (9, 20), (31, 13), (14, 16), (10, 10)]


@pytest.fixture
def paths(tmp_path: Path) -> list[Path]:
    """Five pictures of as many sizes."""
    return [write_picture(tmp_path / f"{number}.png", number, *size) for number, size in enumerate(SIZES)]


def split_of(paths: list[Path], **changes: Any) -> FileSplit:
    arguments: dict[str, Any] = {
        "encoded": paths_of([str(path) for path in paths]),
        "rows": torch.arange(len(paths)),
        "targets": torch.arange(len(paths)) * 10,
        "image_size": 14,
        "crop_pct": 0.9,
        "channels": 3,
        "workers": 0,
        "corruption": Corruption(limit=0),
    }
    return FileSplit(**{**arguments, **changes})


def everything(split: FileSplit, size: int = 2) -> tuple[Tensor, Tensor]:
    batches = list(split.batches(size))
    return torch.cat([images for images, _ in batches]), torch.cat([labels for _, labels in batches])


def drawn(image: Image.Image) -> Tensor:
    """An image of random numbers from all three generators, and of the picture's own size."""
    values = [random.randrange(256), int(np.random.randint(256)), int(torch.randint(256, ())), image.width]
    return torch.tensor(values, dtype=torch.uint8).reshape(1, 2, 2)


def ignores_interrupts(image: Image.Image) -> Tensor:
    return torch.tensor([[[signal.getsignal(signal.SIGINT) == signal.SIG_IGN]]], dtype=torch.uint8)


def dies(image: Image.Image) -> Tensor:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.parametrize(("image_size", "crop_pct"), [(14, 0.9), (14, 0.875), (9, 0.95), (12, 1.0)])
def test_evaluation_view_is_timms(paths: list[Path], image_size: int, crop_pct: float) -> None:
    transform = create_transform(
        image_size, interpolation="bicubic", crop_pct=crop_pct, mean=(0.0,) * 3, std=(1.0,) * 3
    )
    images, _ = everything(split_of(paths, image_size=image_size, crop_pct=crop_pct))
    torch.testing.assert_close(images, torch.stack([transform(Image.open(path)) for path in paths]))


def test_whole_images_of_the_right_size_keep_every_pixel(paths: list[Path]) -> None:
    images, _ = everything(split_of(paths[:1], image_size=12, crop_pct=1.0))
    assert torch.equal(images[0] * 255, pil_to_tensor(picture(0)).float())


def test_one_channel_is_grey(paths: list[Path]) -> None:
    images, _ = everything(split_of(paths[:1], image_size=12, crop_pct=1.0, channels=1))
    assert torch.equal((images[0] * 255).round(), pil_to_tensor(picture(0).convert("L")).float())


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_order(paths: list[Path], workers: int) -> None:
    split = split_of(paths, workers=workers)
    assert [labels.tolist() for _, labels in split.batches(2)] == [[0, 10], [20, 30], [40]]
    assert torch.equal(everything(split)[0], everything(split_of(paths), size=5)[0])


def test_subset_and_first(paths: list[Path]) -> None:
    split = split_of(paths)
    images, labels = everything(split)
    chosen = split.subset(torch.tensor([4, 1, 3])).first(2)
    assert (len(chosen), chosen.labels.tolist()) == (2, [40, 10])
    assert torch.equal(everything(chosen)[0], images[[4, 1]])
    assert torch.equal(everything(split.first(None))[1], labels)
    assert [labels.tolist() for _, labels in chosen.stream([[(1, 0)], [(0, 0)]], drawn)] == [[10], [40]]


def test_stream_does_not_depend_on_workers_batches_or_what_was_drawn_before(paths: list[Path]) -> None:
    plan = [[(0, 7), (1, 7)], [(1, 2**62 + 5), (4, 9), (1, 9)], [(2, 1)]]
    here = list(split_of(paths).stream(plan, drawn))
    random.seed(1), np.random.seed(1), torch.manual_seed(1)
    for (images, labels), (others, other_labels) in zip(
        here, split_of(paths, workers=2).stream(plan, drawn), strict=True
    ):
        assert torch.equal(images, others)
        assert torch.equal(labels, other_labels)
    assert [labels.tolist() for _, labels in here] == [[0, 10], [10, 40, 10], [20]]
    assert here[0][0].dtype == torch.uint8
    ((again, _),) = split_of(paths).stream([[(1, 9), (0, 7)]], drawn)
    assert torch.equal(again, torch.stack([here[1][0][2], here[0][0][0]]))


def test_a_seed_sets_all_three_generators(paths: list[Path]) -> None:
    ((images, _),) = split_of(paths).stream([[(0, seed) for seed in (3, 3 + 2**32, 4, 3)]], drawn)
    values = images.flatten(1)[:, :3]
    assert torch.equal(values[0], values[3])
    random.seed(3), torch.manual_seed(3)
    assert values[0, 0] == random.randrange(256)
    assert values[0, 2] == torch.randint(256, ())
    for column in range(2):
        assert len(set(values[:3, column].tolist())) == 3
    assert values[0, 2] != values[2, 2]  # of which torch takes the lower 32 bits


@pytest.mark.parametrize("workers", [0, 2])
def test_generators_here_are_left_alone(paths: list[Path], workers: int) -> None:
    def state() -> list[object]:
        return [random.getstate(), np.random.get_state()[1].tolist(), torch.get_rng_state().tolist()]  # type: ignore[index]

    before = state()
    list(split_of(paths, workers=workers).stream([[(0, 5)], [(1, 5)]], drawn))
    everything(split_of(paths, workers=workers))
    assert state() == before


def test_workers_leave_interrupts_to_the_parent(paths: list[Path]) -> None:
    before = signal.getsignal(signal.SIGINT)
    ((images, _),) = split_of(paths, workers=1).stream([[(0, 0)]], ignores_interrupts)
    assert images.item() == 1
    assert signal.getsignal(signal.SIGINT) == before


def test_workers_that_cannot_begin(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """As where /dev/shm is missing, or may only be read."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    monkeypatch.setattr("multiprocessing.synchronize.SemLock.__init__", refused)
    with pytest.raises(DataError) as caught:
        everything(split_of(paths, workers=2))
    assert str(caught.value) == (
        "data.workers: no processes can read ahead (Read-only file system); they need memory, some of it shared, in "
        "/dev/shm; data.workers=0 does without them"
    )
    monkeypatch.undo()
    everything(split_of(paths, workers=0))


def test_a_worker_that_dies_is_told(paths: list[Path]) -> None:
    with pytest.raises(DataError, match=r"a process that reads images has died; .*data.workers = 1"):
        list(split_of(paths, workers=1).stream([[(0, 0)]], dies))


@pytest.mark.parametrize("workers", [0, 2])
def test_more_workers_than_processors_is_no_warning(
    paths: list[Path], workers: int, recwarn: pytest.WarningsRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    everything(split_of(paths, workers=workers))
    assert not [warning for warning in recwarn if "worker processes" in str(warning.message)]


BROKEN: dict[str, Callable[[], bytes]] = {
    "empty": lambda: b"",
    "text": lambda: b"hello",
    "truncated": lambda: truncated(1),
    "broken chunk": lambda: encoded(picture(1)).replace(b"IDAT", b"ID\0T"),
    "cut jpeg": lambda: encoded(picture(1, 64, 64), "JPEG")[:700],
    "cut gif": lambda: encoded(picture(1, mode="L"), "GIF")[:40],
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_images_are_unreadable(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "x.png"
    path.write_bytes(BROKEN[kind]())
    for source in (str(path), path.read_bytes()):
        with pytest.raises(Unreadable) as caught:
            open_image(source, 3)
        assert str(caught.value)
        assert "\n" not in str(caught.value)


def test_huge_and_absent_images_are_unreadable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with pytest.raises(Unreadable, match="No such file"):
        open_image(str(tmp_path / "absent.png"), 3)
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 50)
    with pytest.raises(Unreadable, match="exceeds limit of 100 pixels"):
        open_image(encoded(picture(0)), 3)


@pytest.mark.parametrize("workers", [0, 2])
def test_a_broken_image_is_left_out_and_counted_once(paths: list[Path], workers: int) -> None:
    paths[1].write_bytes(b"no image")
    split = split_of(paths, workers=workers, corruption=Corruption(limit=1))
    assert [labels.tolist() for _, labels in split.batches(2)] == [[0], [20, 30], [40]]
    assert len(split.corrupt) == 1
    part = split.subset(torch.tensor([1, 0])).to(torch.device("cpu"))
    assert [labels.tolist() for _, labels in part.batches(1)] == [[0]]
    assert [labels.tolist() for _, labels in split.stream([[(0, 1), (1, 1)], [(2, 1)]], drawn)] == [[0], [20]]
    assert split.corrupt == part.corrupt == [f"{paths[1]} (not an image)"]
    assert split.labels.tolist() == [0, 10, 20, 30, 40]


@pytest.mark.parametrize("workers", [0, 2])
def test_too_many_broken_images(paths: list[Path], workers: int) -> None:
    for path in (paths[1], paths[3]):
        path.write_bytes(b"no image")
    with pytest.raises(DataError) as caught:
        list(split_of(paths, workers=workers, corruption=Corruption(limit=1)).batches(2))
    assert str(caught.value) == (
        f"2 images cannot be read, more than data.max_corrupt = 1: {paths[1]} (not an image), "
        f"{paths[3]} (not an image); mend or remove them, or raise data.max_corrupt"
    )


def test_only_the_first_of_many_broken_images_are_named() -> None:
    corruption = Corruption(limit=4)
    for name in "abcda":
        corruption.note(name, "broken")
    with pytest.raises(DataError, match=r"5 images .* = 4: a \(broken\), b \(broken\), c \(broken\), …; mend"):
        corruption.note("e", "broken")


def test_a_batch_of_broken_images_only(paths: list[Path]) -> None:
    paths[0].write_bytes(b"no image")
    split = split_of(paths, corruption=Corruption(limit=5))
    stream = split.stream([[(1, 0)], [(0, 0), (0, 1)]], drawn)
    assert next(stream)[1].tolist() == [10]
    with pytest.raises(DataError, match=r"none of the 2 images of a batch can be read: .*0.png"):
        next(stream)
    assert [labels.tolist() for _, labels in split.batches(1)] == [[10], [20], [30], [40]]


def test_decoded_is_what_batches_give(paths: list[Path]) -> None:
    paths[2].write_bytes(b"no image")
    split = split_of(paths, corruption=Corruption(limit=1), workers=2)
    memory = split.decoded()
    images, labels = everything(split)
    assert memory.images.dtype == torch.uint8
    assert torch.equal(memory.take(slice(None))[0], images)
    assert memory.labels.tolist() == labels.tolist() == [0, 10, 30, 40]


def test_names_that_are_not_utf8_and_a_bug_in_a_transform(tmp_path: Path) -> None:
    path = Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.png"))
    write_picture(path, 0)
    split = split_of([path])
    assert len(everything(split)[0]) == 1

    def buggy(image: Image.Image) -> Tensor:
        raise ValueError("a bug")

    with pytest.raises(ValueError, match="a bug"):
        list(split.stream([[(0, 0)]], buggy))


class Pictures(FileDataSet):
    """The pictures at some paths, of which the last is the test set."""

    name = "pictures"
    description = how_to_get = ""

    def __init__(self, paths: list[Path], in_memory: bool | None = None) -> None:
        super().__init__(in_memory)
        self.paths = [str(path) for path in paths]

    def load(self, data: ImageSection, image_size: int) -> dict[Any, Any]:
        parts: dict[Any, Any] = {
            "train": (paths_of(self.paths[:-1]), torch.arange(len(self.paths) - 1)),
            "test": (paths_of(self.paths[-1:]), torch.zeros(1, dtype=torch.int64)),
        }
        return self.split_up(parts, data, image_size)

    def facts(self) -> Any: ...
    def missing(self) -> Any: ...
    def files(self) -> Any: ...
    def fetch(self) -> Any: ...


def test_small_data_sets_live_in_memory(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    data = ImageSection(workers=0)
    assert files.IN_MEMORY_BYTES == 2**31
    for limit, kind in ((5 * 3 * 8 * 8, MemorySplit), (5 * 3 * 8 * 8 - 1, FileSplit)):
        monkeypatch.setattr(files, "IN_MEMORY_BYTES", limit)
        assert {type(split) for split in Pictures(paths).load(data, 8).values()} == {kind}
        assert type(Pictures(paths, in_memory=True).load(data, 8)["train"]) is MemorySplit
        assert type(Pictures(paths, in_memory=False).load(data, 8)["train"]) is FileSplit
    grey = Pictures(paths, in_memory=True).load(ImageSection(workers=0, channels=1), 8)["train"]
    assert grey.images.shape == (4, 1, 8, 8)


def test_splits_of_a_data_set_share_one_count(paths: list[Path]) -> None:
    paths[0].write_bytes(b"no image")
    paths[-1].write_bytes(b"no image")
    source = Pictures(paths, in_memory=False)
    splits = source.load(ImageSection(workers=0, max_corrupt=1), 8)
    list(splits["train"].batches(8))
    assert source.corrupt == splits["test"].corrupt == [f"{paths[0]} (not an image)"]
    with pytest.raises(DataError, match="2 images cannot be read"):
        list(splits["test"].batches(8))
    with pytest.raises(DataError, match="2 images cannot be read"):
        Pictures(paths, in_memory=True).load(ImageSection(workers=0, max_corrupt=1), 8)
