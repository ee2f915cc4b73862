"""Parquet as the Hugging Face hub has it: columns, labels, sizes, and what is said where they cannot be told."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from image_files import encoded, picture, truncated
from torchvision.transforms.functional import pil_to_tensor

from kattn_cli.data.images import MemorySplit
from kattn_cli.data.reading.files import FileSplit
from kattn_cli.data.sets import huggingface
from kattn_cli.data.sets.huggingface import HuggingFace
from kattn_cli.errors import DataError
from kattn_cli.experiment.recipes import resolved
from kattn_cli.recipe.data import ImageSection

DATA = ImageSection(name="huggingface", workers=0)
FEATURES = {"img": {"_type": "Image"}, "label": {"names": ["ant", "cat", "owl"], "_type": "ClassLabel"}}


def write(path: Path, columns: dict[str, Any], features: dict[str, Any] | None = None) -> None:
    table = pa.table(columns)
    if features:
        table = table.replace_schema_metadata({"huggingface": json.dumps({"info": {"features": features}})})
    path.parent.mkdir(parents=True, exist_ok=True)
    pq.write_table(table, path)


def images(*numbers: int) -> list[bytes]:
    return [encoded(picture(number)) for number in numbers]


def pixels(*numbers: int) -> torch.Tensor:
    return torch.stack([pil_to_tensor(picture(number)) for number in numbers])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The hub's layout: bytes and paths, class labels, two files of training images."""
    for name, numbers, labels in (("train-0", (0, 1), [2, 0]), ("train-1", (2,), [1]), ("test", (3, 4), [1, 1])):
        rows = [{"bytes": image, "path": f"{number}.png"} for number, image in zip(numbers, images(*numbers))]  # noqa: B905
        write(tmp_path / f"{name}.parquet", {"img": rows, "label": labels}, FEATURES)
    return tmp_path


def fault(folder: Path, data: ImageSection = DATA, **options: Any) -> str:
    with pytest.raises(DataError) as caught:
        HuggingFace(path=str(folder), **options).load(data, 12)
    return str(caught.value)


def memory(folder: Path, size: int = 12, data: ImageSection = DATA, **options: Any) -> dict[Any, MemorySplit]:
    splits = HuggingFace(path=str(folder), **options).load(data, size)
    assert all(isinstance(split, MemorySplit) for split in splits.values())
    return splits  # type: ignore[return-value]


def test_hub_layout(folder: Path) -> None:
    source = HuggingFace(path=str(folder))
    facts = source.facts()
    assert (facts.classes, facts.channels, facts.image_size, facts.own_validation) == (3, 3, 12, False)
    splits = memory(folder)
    assert torch.equal(splits["train"].images, pixels(0, 1, 2))
    assert splits["train"].labels.tolist() == [2, 0, 1]
    assert torch.equal(splits["test"].images, pixels(3, 4))
    assert source.missing() == ""
    assert [check.detail for check in source.files()] == ["2 rows", "1 rows", "2 rows"]


def test_images_of_one_size_are_resized_whole(folder: Path) -> None:
    larger = memory(folder, 24)["train"].images
    assert larger.shape == (3, 3, 24, 24)
    expected = pil_to_tensor(picture(0).resize((24, 24), resample=3))
    assert torch.equal(larger[0], expected)


def test_bytes_without_metadata_and_grey_images(tmp_path: Path) -> None:
    for split in ("train", "test"):
        rows = [encoded(picture(number, mode="L")) for number in (0, 1)]
        write(tmp_path / f"{split}.parquet", {"x": rows, "digit": [1, 0]})
    source = HuggingFace(path=str(tmp_path))
    assert (source.facts().channels, source.facts().classes) == (1, 2)
    assert torch.equal(memory(tmp_path)["test"].images[1], pil_to_tensor(picture(1, mode="L")))
    colour = memory(tmp_path, data=ImageSection(name="huggingface", workers=0, channels=3))["test"]
    assert colour.images.shape == (2, 3, 12, 12)


def test_paths_where_there_are_no_bytes(tmp_path: Path) -> None:
    file = tmp_path / "7.png"
    file.write_bytes(encoded(picture(7)))
    rows = [{"bytes": None, "path": str(file)}, {"bytes": images(8)[0], "path": None}]
    for split in ("train", "test"):
        write(tmp_path / f"{split}.parquet", {"image": rows, "label": [0, 1]})
    assert torch.equal(memory(tmp_path)["train"].images, pixels(7, 8))


def test_other_places_and_names(folder: Path, tmp_path: Path) -> None:
    hub = tmp_path / "hub"
    for split in ("train", "test"):
        write(hub / "data" / f"{split}-00000-of-00001.parquet", {"image": images(1), "label": [0]})
    write(hub / "plain" / "train" / "0.parquet", {"image": images(2, 3), "label": [0, 1]})
    write(hub / "plain" / "dev.parquet", {"image": images(4), "label": [0]})
    assert torch.equal(memory(hub)["train"].images, pixels(1))
    splits = memory(hub, config="plain", test="dev", validation_split="dev")
    assert torch.equal(splits["train"].images, pixels(2, 3))
    assert set(splits) == {"train", "test", "validation"}
    assert fault(hub, config="plain", test="test") == (
        f"huggingface: data.test: {hub} has no test.parquet or test-*.parquet; there are dev, train"
    )
    assert fault(folder, train="trian") == (
        f'huggingface: data.train: {folder} has no trian.parquet or trian-*.parquet; did you mean "train"?'
    )


def test_images_of_many_sizes_are_cropped(tmp_path: Path) -> None:
    for split in ("train", "test"):
        rows = [encoded(picture(0, 12, 12)), encoded(picture(1, 20, 30))]
        write(tmp_path / f"{split}.parquet", {"image": rows, "label": [0, 1]})
    assert HuggingFace(path=str(tmp_path)).facts().image_size is None
    on_disk = HuggingFace(path=str(tmp_path), in_memory=False).load(DATA, 8)["train"]
    assert isinstance(on_disk, FileSplit)
    assert (on_disk.crop_pct, on_disk.only_size) == (0.875, None)
    assert torch.equal(next(on_disk.batches(2))[0], memory(tmp_path, 8)["train"].take(slice(None))[0])


def test_an_image_of_another_size_among_those_of_one(folder: Path) -> None:
    write(folder / "test.parquet", {"img": [encoded(picture(0, 20, 15)), *images(1)], "label": [0, 1]})
    source = HuggingFace(path=str(folder))
    assert source.load(DATA, 12)["test"].labels.tolist() == [1]
    assert source.corrupt == [f"{folder}, test, row 0 (20 × 15 pixels, not 12 × 12: give data.image_size)"]
    given = memory(folder, data=ImageSection(name="huggingface", workers=0, image_size=12))
    assert given["test"].labels.tolist() == [0, 1]


def test_damaged_rows_are_named(folder: Path) -> None:
    write(folder / "train.parquet", {"img": [*images(0), truncated(1), None, b""], "label": [0, 1, 2, 0]}, FEATURES)
    source = HuggingFace(path=str(folder))
    assert source.load(DATA, 12)["train"].labels.tolist() == [0]
    names = [line.partition(" (")[0] for line in source.corrupt]
    assert names == [f"{folder}, train, row {row}" for row in (1, 2, 3)]
    limited = ImageSection(name="huggingface", workers=0, max_corrupt=2)
    assert "3 images cannot be read, more than data.max_corrupt = 2" in fault(folder, limited)


def test_labels_that_are_names(tmp_path: Path) -> None:
    write(tmp_path / "train.parquet", {"image": images(0, 1, 2), "label": ["owl", "ant", "cat"]})
    write(tmp_path / "test.parquet", {"image": images(3), "label": ["cat"]})
    splits = memory(tmp_path)
    assert splits["train"].labels.tolist() == [2, 0, 1]
    assert splits["test"].labels.tolist() == [1]
    write(tmp_path / "test.parquet", {"image": images(3), "label": ["rat"]})
    assert fault(tmp_path) == f'{tmp_path}, test, row 0: label rat is none of the 3 classes; did you mean "cat"?'


@pytest.mark.parametrize(
    ("labels", "words"),
    [
        ([0, 2, 2], "the labels in column label must be all of 0 … K − 1, or names; they are 2 from 0 to 2"),
        ([1, 2, 3], "they are 3 from 1 to 3"),
        ([0, 1, None], "row 2: label None is neither a whole number nor a name"),
        ([0.0, 1.0, 2.0], "row 0: label 0.0 is neither a whole number nor a name"),
    ],
)
def test_labels_that_are_no_classes(labels: list[Any], words: str, folder: Path) -> None:
    write(folder / "train.parquet", {"img": images(0, 1, 2), "label": labels})
    message = fault(folder)
    assert words in message
    assert message.startswith(f"{folder}, train")


def test_hidden_labels_of_a_test_set(folder: Path) -> None:
    write(folder / "test.parquet", {"img": images(0), "label": [-1]}, FEATURES)
    assert fault(folder) == f"{folder}, test, row 0: label -1 is none of the 3 classes"


def test_columns_that_cannot_be_told(folder: Path) -> None:
    assert (
        fault(folder, image="photo") == f"data.image: {folder}, train has no column photo; its columns are img, label"
    )
    assert fault(folder, label="lable") == f'data.label: {folder}, train has no column lable; did you mean "label"?'
    write(folder / "train.parquet", {"a": images(0), "b": images(1), "fine": [0], "coarse": [0]})
    assert fault(folder) == (f"data.image: say which column of {folder}, train holds the images; it may be any of a, b")
    assert fault(folder, image="a") == (
        f"data.label: say which column of {folder}, train holds the labels; it may be any of fine, coarse"
    )
    assert fault(folder, image="a", label="fine").startswith(f"{folder}, test has no column ")
    write(folder / "train.parquet", {"text": ["x"], "label": [0]})
    assert fault(folder).endswith("holds the images; none of text, label looks like it")


def test_files_that_are_damaged_or_empty(folder: Path) -> None:
    write(folder / "test.parquet", {"img": pa.array([], pa.binary()), "label": pa.array([], pa.int64())})
    assert fault(folder) == f"{folder}, test has no rows"
    (folder / "test.parquet").write_bytes(b"PAR1 and no more")
    assert fault(folder).startswith(f"{folder}/test.parquet: cannot be read as parquet: ")
    check = HuggingFace(path=str(folder)).files()[-1]
    assert (check.path, check.status) == (folder / "test.parquet", "wrong checksum")
    write(folder / "train-2.parquet", {"img": images(0), "label": ["x"]})
    assert f"{folder}/train-0.parquet and 2 more differ in their columns" in fault(folder)


def test_folders_that_are_none(folder: Path) -> None:
    file = folder / "test.parquet"
    assert (
        HuggingFace(path=str(file))
        .missing()
        .startswith(f"data.path: {file} is a file; give its folder; give data.path")
    )
    assert HuggingFace(path=f"{folder}/absent").missing().startswith(f"data.path: {folder}/absent is no folder; ")
    (folder / "empty").mkdir()
    assert HuggingFace(path=f"{folder}/empty").missing().endswith("there are no parquet files")
    with pytest.raises(DataError, match="is a folder of your own, which cannot be fetched"):
        HuggingFace(path=str(folder)).fetch()


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[Any]:
    """What was asked of a hub that knows ``us/Tiny``."""
    datasets = pytest.importorskip("datasets")
    asked: list[Any] = []

    def load(*args: Any, **kwargs: Any) -> Any:
        asked.append((*args, kwargs["split"]))
        if args[0] not in ("us/Tiny", "parquet"):
            raise ConnectionError(f"Couldn't reach '{args[0]}' on the Hub\nand a long story")
        features = datasets.Features(
            {"picture": datasets.Image(), "kind": datasets.ClassLabel(names=["ant", "cat", "owl"])}
        )
        return datasets.Dataset.from_dict({"picture": [picture(5), picture(6)], "kind": [2, 0]}, features=features)

    monkeypatch.setattr(datasets, "load_dataset", load)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    return asked


def test_a_data_set_of_the_hub(hub: list[Any], tmp_path: Path) -> None:
    source = HuggingFace(path="us/Tiny", config="small")
    with pytest.raises(DataError, match=r"us/Tiny is neither a folder nor in "):
        source.facts()
    assert (hub, source.files()[0].status) == ([], "missing")
    (tmp_path / "cache" / "us___tiny").mkdir(parents=True)
    assert source.facts().classes == 3
    splits = source.load(DATA, 12)
    assert isinstance(splits["train"], MemorySplit)
    assert torch.equal(splits["train"].images, pixels(5, 6))
    assert splits["train"].labels.tolist() == [2, 0]
    assert hub == [("us/Tiny", "small", "train"), ("us/Tiny", "small", "test")]
    assert source.missing() == ""
    assert source.files()[0].path == tmp_path / "cache" / "us___tiny"


def test_a_hub_that_cannot_be_reached(hub: list[Any], tmp_path: Path) -> None:
    source = HuggingFace(path="us/other", config="small")
    with pytest.raises(DataError) as caught:
        source.fetch()
    assert str(caught.value) == f"huggingface: {source.missing()} (Couldn't reach 'us/other' on the Hub)"
    assert source.missing() == (
        f"data.path: us/other is neither a folder nor in {tmp_path}/cache; where there is a network, load it once: "
        "python -c \"import datasets; datasets.load_dataset('us/other', 'small')\"; "
        "or give a folder with train.parquet and test.parquet"
    )


def test_large_parquet_goes_through_datasets(folder: Path, hub: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    memory(folder)
    assert hub == []
    monkeypatch.setattr(huggingface, "IN_MEMORY_PARQUET", 100)
    assert torch.equal(memory(folder)["test"].images, pixels(5, 6))
    assert hub == [("parquet", "train"), ("parquet", "test")]


def test_a_run_keeps_absolute_paths_and_names_of_the_hub(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    for path, expected in ((folder.name, str(folder)), ("us/Tiny", "us/Tiny")):
        assert resolved(ImageSection(name="huggingface", path=path)).options["path"] == expected  # type: ignore[call-arg]
