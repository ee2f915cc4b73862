"""Folders of images beside a data set: their layout, and which classes they are."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torchvision.datasets
from image_files import picture, truncated, write_classes, write_picture
from tiny_data import write_cifar
from torchvision.transforms.functional import pil_to_tensor

from kattn_cli.data.reading.class_folders import class_names, read_class_folders
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import ImageSection
from kattn_cli.tasks import load_data

DIGITS = ImageSection(name="digits", workers=0)
NUMBERS = [{str(label): label for label in range(10)}]


@pytest.fixture
def animals(tmp_path: Path) -> ImageSection:
    for split in ("train", "val"):
        write_classes(tmp_path / "animals" / split, {"bee": 2, "cat": 2, "dog": 2, "eel": 2})
    section = {"name": "imagefolder", "root": str(tmp_path / "animals"), "image_size": 12, "workers": 0}
    return ImageSection.model_validate(section)


def test_some_of_the_classes_keep_their_labels(animals: ImageSection, tmp_path: Path) -> None:
    write_classes(tmp_path / "a", {"eel": 2, "cat": 1}, first=50)
    (tmp_path / "a" / ".hidden").mkdir()
    (one,) = read_class_folders(tmp_path / "a", class_names(animals))
    assert one.known
    assert one.classes.tolist() == [1, 3]
    split = one.split(animals, load_data(animals))
    assert split.labels.tolist() == [1, 3, 3]


def test_images_are_seen_as_the_data_sets_own(animals: ImageSection) -> None:
    """Cropped as the recipe has it, so that the test folder itself is the test split."""
    loaded = load_data(animals)
    (one,) = read_class_folders(Path(animals.options["root"]) / "val", class_names(animals))
    ours, theirs = (next(split.batches(8)) for split in (one.split(animals, loaded), loaded.splits["test"]))
    assert torch.equal(ours[0], theirs[0])
    assert torch.equal(ours[1], theirs[1])


def test_nothing_is_cropped_where_images_are_of_one_size(tmp_path: Path) -> None:
    for label in "37":
        write_picture(tmp_path / label / "a.png", int(label), 8, 8)
    (one,) = read_class_folders(tmp_path, class_names(DIGITS))
    images, labels = next(one.split(DIGITS, load_data(DIGITS)).batches(2))
    assert labels.tolist() == [3, 7]
    grey = torch.stack([pil_to_tensor(picture(number, 8, 8).convert("L")) for number in (3, 7)])
    assert torch.equal((images * 255).round(), grey.float())


def test_imagenet_c_layout(tmp_path: Path) -> None:
    for corruption, severity in (("fog", 1), ("fog", 5), ("snow", 2)):
        write_classes(tmp_path / corruption / str(severity), {"0": 1, "9": 2})
    found = read_class_folders(tmp_path, NUMBERS)
    assert [(one.corruption, one.severity) for one in found] == [("fog", 1), ("fog", 5), ("snow", 2)]
    assert [one.classes.tolist() for one in found] == [[0, 9]] * 3
    assert found[2].path == tmp_path / "snow" / "2"


def test_digits_in_folders_of_their_own_are_no_severities(tmp_path: Path) -> None:
    write_classes(tmp_path, {str(label): 1 for label in range(1, 6)})
    (one,) = read_class_folders(tmp_path, NUMBERS)
    assert (one.corruption, one.severity) == ("", 0)
    assert one.classes.tolist() == [1, 2, 3, 4, 5]


def test_folders_that_are_no_classes_at_all(tmp_path: Path) -> None:
    write_classes(tmp_path, {"stripes": 1, "dots": 2})
    (one,) = read_class_folders(tmp_path, NUMBERS)
    assert not one.known
    assert one.classes.tolist() == []
    assert len(one.split(DIGITS, load_data(DIGITS))) == 3


def test_cifar_by_name_or_by_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_cifar(tmp_path, torchvision.datasets.CIFAR10, "labels", 10, monkeypatch)
    monkeypatch.setattr(
        torchvision.datasets.CIFAR10, "_load_meta", lambda self: setattr(self, "classes", list("abcdefghij"))
    )
    names = class_names(ImageSection.model_validate({"name": "cifar10", "root": str(tmp_path)}))
    for folders in (("c", "j"), ("2", "9")):
        write_classes(tmp_path / folders[0], dict.fromkeys(folders, 1))
        assert read_class_folders(tmp_path / folders[0], names)[0].classes.tolist() == [2, 9]


def test_a_class_list_says_which_classes_there_are(animals: ImageSection, tmp_path: Path) -> None:
    (tmp_path / "list.txt").write_text("eel\nbee\n")
    listed = ImageSection.model_validate({**animals.model_dump(), "class_list": str(tmp_path / "list.txt")})
    assert class_names(listed) == [{"eel": 0, "bee": 1}]


def test_images_that_cannot_be_read_are_counted(animals: ImageSection, tmp_path: Path) -> None:
    write_classes(tmp_path / "a", {"bee": 1, "cat": 1})
    (tmp_path / "a" / "cat" / "broken.png").write_bytes(truncated(0))
    (one,) = read_class_folders(tmp_path / "a", class_names(animals))
    split = one.split(animals, load_data(animals))
    assert sum(len(labels) for _, labels in split.batches(8)) == 2
    assert [name.partition(" ")[0] for name in split.corrupt] == [str(tmp_path / "a" / "cat" / "broken.png")]


def test_wrong_folders(tmp_path: Path) -> None:
    def fault(path: Path) -> str:
        with pytest.raises(DataError) as caught:
            [one.split(DIGITS, load_data(DIGITS)) for one in read_class_folders(path, NUMBERS)]
        return str(caught.value).replace(f"{tmp_path}/", "")

    assert fault(tmp_path / "no") == "no is not a folder; expected one with a folder of images for each class"
    write_picture(tmp_path / "flat" / "0.png", 0)
    assert fault(tmp_path / "flat").startswith("flat has no class folders; expected <class>/* or <corruption>/")
    write_classes(tmp_path / "some", {"1": 1, "2": 1, "seven": 1, "12": 1})
    assert "has a folder 12, which is no class of the data set (the nearest is 2), and others" in fault(
        tmp_path / "some"
    )
    write_classes(tmp_path / "one", {"1": 2})
    assert fault(tmp_path / "one") == "one has one class folder, 1; among one class every answer is right"
    write_classes(tmp_path / "empty", {"1": 1})
    (tmp_path / "empty" / "2").mkdir()
    assert fault(tmp_path / "empty") == "empty/2 has no images; remove it, or fill it"
    write_classes(tmp_path / "c" / "fog" / "1", {"a": 1, "b": 1})
    assert fault(tmp_path / "c") == "c/fog/1: a is no class of the data set; its classes are called 0, 1, 2 and so on"
