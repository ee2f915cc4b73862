"""Images in one folder a class: which files, which labels, and what is said of folders that do not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from image_files import write_classes, write_picture
from torchvision.datasets import ImageFolder as Torchvision

from kattn_cli.data.images import MemorySplit
from kattn_cli.data.reading.files import FileSplit
from kattn_cli.data.sets.imagefolder import ImageFolder
from kattn_cli.errors import DataError
from kattn_cli.experiment.recipes import resolved
from kattn_cli.recipe.data import ImageSection

DATA = ImageSection(name="imagefolder", workers=0)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Three classes; 2, 1 and 3 training images, one test image each."""
    write_classes(tmp_path / "train", {"owl": 2, "ant": 1, "cat": 3})
    write_classes(tmp_path / "val", {"owl": 1, "ant": 1, "cat": 1}, first=10)
    return tmp_path


def folder(root: Path, **options: Any) -> ImageFolder:
    return ImageFolder(root=str(root), **options)


def fault(root: Path, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        folder(root, **options).load(DATA, 8)
    return str(caught.value)


def test_files_and_labels_are_torchvisions(root: Path) -> None:
    write_picture(root / "train" / "cat" / "more" / "z.PNG", 20)
    (root / "train" / "cat" / "notes.txt").write_text("not an image")
    splits = folder(root, in_memory=False).load(DATA, 8)
    for name, below in (("train", "train"), ("test", "val")):
        split, expected = splits[name], Torchvision(str(root / below))  # type: ignore[index]
        assert isinstance(split, FileSplit)
        assert split.labels.tolist() == expected.targets
        assert [split.encoded.source(row) for row in split.rows.tolist()] == [path for path, _ in expected.samples]
    assert splits["train"].labels.tolist() == [0, 1, 1, 1, 1, 2, 2]


def test_hidden_files_and_folders_are_passed_over(root: Path) -> None:
    write_picture(root / "train" / ".cache" / "x.png", 0)
    (root / "train" / "ant" / "._0.JPEG").write_bytes(b"")
    assert folder(root).facts().classes == 3
    assert len(folder(root, in_memory=False).load(DATA, 8)["train"]) == 6


def test_facts_and_memory(root: Path) -> None:
    facts = folder(root).facts()
    assert (facts.classes, facts.channels, facts.image_size, facts.own_validation) == (3, 3, None, False)
    memory = folder(root).load(DATA, 8)["train"]
    on_disk = folder(root, in_memory=False).load(DATA, 8)["train"]
    assert isinstance(memory, MemorySplit)
    assert memory.images.shape == (6, 3, 8, 8)
    assert torch.equal(memory.take(slice(None))[0], next(on_disk.batches(6))[0])
    grey = folder(root).load(DATA.model_copy(update={"channels": 1}), 8)["train"]
    assert isinstance(grey, MemorySplit)
    assert grey.images.shape == (6, 1, 8, 8)


def test_a_validation_folder(root: Path) -> None:
    write_classes(root / "dev", {"owl": 2, "ant": 1, "cat": 1}, first=30)
    source = folder(root, validation_folder="dev")
    assert source.facts().own_validation
    assert source.load(DATA, 8)["validation"].labels.tolist() == [0, 1, 2, 2]
    assert fault(root, validation_folder="dew") == (
        f'imagefolder: data.validation_folder: {root}/dew is not a folder; did you mean "dev"?'
    )


def test_a_class_list_chooses_and_orders(root: Path) -> None:
    names = root / "some.txt"
    names.write_text("# two of three\nowl\n\nant  # the second\n")
    source = folder(root, class_list=str(names))
    assert source.facts().classes == 2
    splits = source.load(DATA, 8)
    assert splits["train"].labels.tolist() == [0, 0, 1]
    assert splits["test"].labels.tolist() == [0, 1]
    names.write_text("owl\nbat\n")
    assert fault(root, class_list=str(names)) == f'{names}: {root}/train has no class bat; did you mean "cat"?'
    names.write_text("owl\nant\nowl\n")
    assert fault(root, class_list=str(names)) == f"{names}, line 3: owl is there already, in line 1"
    names.write_text("owl\n# ant\n")
    assert fault(root, class_list=str(names)) == f"{names}: a list of classes needs two or more, one a line"
    assert "data.class_list" in fault(root, class_list=str(root / "absent.txt"))


def test_train_and_test_must_have_the_same_classes(root: Path) -> None:
    (root / "val" / "owl").rename(root / "val" / "owls")
    assert fault(root) == f'{root}/train has a class owl and {root}/val has not; did you mean "owls"?'
    (root / "val" / "owls").rename(root / "val" / "owl")
    write_picture(root / "val" / "zebra" / "0.png", 0)
    assert (
        fault(root) == f"{root}/val has a class zebra and {root}/train has not; data.class_list chooses among classes"
    )


def test_folders_without_images(root: Path) -> None:
    (root / "train" / "ant" / "0.JPEG").unlink()
    assert fault(root).startswith(f"{root}/train/ant has no images (.jpg, .jpeg, .png")


def test_folders_without_classes(root: Path) -> None:
    write_picture(root / "flat" / "0.png", 0)
    assert fault(root, test="flat") == f"{root}/flat has no class folders; it needs one for each class"
    write_picture(root / "single" / "ant" / "0.png", 0)
    assert fault(root, test="single") == f"{root}/single has 1 class folder; it needs one for each class"


def test_missing_says_where_it_looked(root: Path) -> None:
    assert folder(root).missing() == ""
    assert folder(root / "absent").missing().startswith(f"data.root: {root}/absent is not a folder; give data.root")
    assert folder(root, test="test").missing() == f"data.test: {root}/test is not a folder; {root} has train, val"
    with pytest.raises(DataError, match=r"imagefolder: data\.root"):
        folder(root / "absent").facts()


def test_files_and_fetch(root: Path) -> None:
    train, other = folder(root, test="absent").files()
    assert (train.path, train.status, train.detail) == (
        root / "train",
        "no checksum known",
        "6 images in 3 folders",
    )
    assert (other.path, other.status) == (root / "absent", "missing")
    with pytest.raises(DataError, match="images of your own, which cannot be fetched"):
        folder(root).fetch()


def test_damaged_images_are_skipped_up_to_the_limit(root: Path) -> None:
    damaged = root / "train" / "cat" / "1.JPEG"
    damaged.write_bytes(b"damaged")
    source = folder(root)
    assert source.load(DATA, 8)["train"].labels.tolist() == [0, 1, 1, 2, 2]
    assert source.corrupt == [f"{damaged} (not an image)"]
    with pytest.raises(DataError, match=r"1 image cannot be read, more than data.max_corrupt = 0: .*/cat/1.JPEG"):
        folder(root).load(DATA.model_copy(update={"max_corrupt": 0}), 8)


def test_a_run_keeps_absolute_paths(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    (root / "some.txt").touch()
    options = resolved(ImageSection(name="imagefolder", root=".", class_list="some.txt")).options  # type: ignore[call-arg]
    assert (options["root"], options["class_list"]) == (str(root), str(root / "some.txt"))
