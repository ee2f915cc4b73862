"""SST-2, SST-5 and IMDB: their files, their vocabularies, and what is said of bad ones."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch

from kattn_cli.data.dataset import SequenceDataSet
from kattn_cli.data.sequences import SequenceSplit
from kattn_cli.data.sets.sentences import Imdb, Sst2, Sst5
from kattn_cli.data.vocabulary import build_vocabulary
from kattn_cli.errors import DataError

SST2 = {
    "train": "a fine film .\t1\na dull , dull film\t0\nfine\t1\n",
    "dev": "a new film\t1\n",
    "test": "dull\t0\nna\u00efve \u2026 \u2028 film\t1",
}
SST5 = {
    "train": "__label__1\ta dull film\n__label__5 a fine film\n",
    "dev": "__label__3 film\r\n",
    "test": "__label__4 fine\n",
}
REVIEWS = {("train", "neg"): ["bad<br />film", "worse"], ("train", "pos"): ["good film", "better"]}
REVIEWS |= {("test", "neg"): ["bad"], ("test", "pos"): ["caf\u00e9"]}


@pytest.fixture
def sst2(tmp_path: Path) -> Path:
    for split, text in SST2.items():
        (tmp_path / f"{split}.tsv").write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def sst5(tmp_path: Path) -> Path:
    for split, text in SST5.items():
        (tmp_path / f"{split}.txt").write_bytes(text.encode())
    return tmp_path


@pytest.fixture
def reviews(tmp_path: Path) -> Path:
    for (split, name), texts in REVIEWS.items():
        folder = tmp_path / "aclImdb" / split / name
        folder.mkdir(parents=True)
        for number, text in enumerate(texts):
            (folder / f"{number}_1.txt").write_text(text, encoding="utf-8")
    return tmp_path


def texts(source: SequenceDataSet, split: SequenceSplit) -> list[str]:
    """By the vocabulary, without the padding."""
    vocabulary = source.vocabulary()
    assert vocabulary is not None
    rows = zip(split.values.numpy(), split.lengths.tolist(), strict=True)
    return [vocabulary.decode(row[:length]) for row, length in rows]


def fault(source: SequenceDataSet) -> str:
    with pytest.raises(DataError) as caught:
        source.load()
    return str(caught.value)


def test_words_of_the_training_sentences(sst2: Path) -> None:
    source = Sst2(root=str(sst2))
    assert source.missing() == ""
    facts = source.facts()
    assert (facts.classes, facts.seq_len, facts.vocabulary, facts.own_validation) == (2, 64, 8, True)
    splits = source.load()
    train = splits["train"]
    assert train.labels.tolist() == [1, 0, 1]
    assert train.lengths.tolist() == [4, 5, 1]
    assert texts(source, train) == ["a fine film .", "a dull , dull film", "fine"]
    assert texts(source, splits["validation"]) == ["a <unk> film"]
    assert texts(source, splits["test"]) == ["dull", "<unk> <unk> film"]
    assert source.truncated == {"train": 0, "validation": 0, "test": 0}
    batch, _ = train.take(slice(None))
    assert batch.values.shape == (3, 5)
    assert batch.mask is not None
    assert batch.mask.sum(-1).tolist() == [4, 5, 1]
    assert not batch.values[~batch.mask].any()


def test_bytes_need_no_training_sentences_to_be_known(sst2: Path) -> None:
    source = Sst2(root="nowhere", vocabulary="bytes", seq_len=10)
    assert source.facts().vocabulary == 256
    source = Sst2(root=str(sst2), vocabulary="bytes", seq_len=10)
    splits = source.load()
    assert splits["test"].values.dtype == torch.uint8
    assert splits["test"].values[1].numpy().tobytes() == "na\u00efve \u2026 \u2028".encode()[:10]
    assert source.truncated == {"train": 2, "validation": 0, "test": 1}
    assert splits["train"].lengths.tolist() == [10, 10, 4]


@pytest.mark.parametrize("kind", ["characters", "bpe"])
def test_other_vocabularies_give_the_text_back(sst2: Path, kind: Any) -> None:
    source = Sst2(root=str(sst2), vocabulary=kind, vocabulary_size=300 if kind == "bpe" else None)
    splits = source.load()
    assert texts(source, splits["train"]) == ["a fine film .", "a dull , dull film", "fine"]
    assert source.facts().vocabulary == source.vocabulary().size
    widths = {"characters": torch.uint8, "bpe": torch.int32}
    assert splits["train"].values.dtype == widths[kind]


def test_fewer_words(sst2: Path) -> None:
    frequent = Sst2(root=str(sst2), min_count=2)
    assert texts(frequent, frequent.load()["train"])[1] == "a dull <unk> dull film"
    few = Sst2(root=str(sst2), vocabulary_size=3)
    assert few.facts().vocabulary == 3


def test_the_vocabulary_of_a_run(sst2: Path) -> None:
    run = sst2 / "run"
    run.mkdir()
    known = build_vocabulary("words", {}, ["film fine new\n"])
    (run / "vocabulary.json").write_text(json.dumps(known.to_json()), encoding="utf-8")
    source = Sst2(root=str(sst2), vocabulary_from=str(run))
    assert source.facts().vocabulary == known.size == 5
    split = source.load()["validation"]
    assert np.array_equal(split.values[0].numpy(), known.encode("a new film"))


def test_a_run_without_a_vocabulary(sst2: Path) -> None:
    source = Sst2(root=str(sst2), vocabulary_from=str(sst2))
    assert source.missing().startswith(f"data.vocabulary_from: {sst2}: has no vocabulary.json; give a run's folder")
    assert fault(source) == f"sst2: {source.missing()}"
    (sst2 / "vocabulary.json").write_text('{"kind": "wo', encoding="utf-8")
    assert fault(source).startswith(f"sst2: data.vocabulary_from: {sst2}/vocabulary.json: is no JSON, or was cut short")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            {"vocabulary_from": "run", "min_count": 2},
            "data.min_count: is of no use with vocabulary_from; leave one of them out",
        ),
        (
            {"vocabulary": "bytes", "vocabulary_size": 99},
            "data.vocabulary_size: is for a vocabulary of words and bpe, not of bytes",
        ),
        ({"vocabulary": "bpe", "min_count": 2}, "data.min_count: is for a vocabulary of words, not of bpe"),
    ],
)
def test_options_that_do_not_go_together(options: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011
        Sst2(**options)
    assert str(caught.value) == said


def test_a_size_that_cannot_be(sst2: Path) -> None:
    message = fault(Sst2(root=str(sst2), vocabulary="bpe", vocabulary_size=20))
    assert message == "sst2: data.vocabulary_size: a BPE needs a size of 256 or more, one token for each byte"


def test_sst5(sst5: Path) -> None:
    source = Sst5(root=str(sst5))
    splits = source.load()
    assert source.facts().classes == 5
    assert {name: split.labels.tolist() for name, split in splits.items()} == {
        "train": [0, 4],
        "validation": [2],
        "test": [3],
    }
    assert texts(source, splits["train"]) == ["a dull film", "a fine film"]
    assert texts(source, splits["validation"]) == ["film"]


@pytest.mark.parametrize("line", ["a film", "a film\t2", "a film\tpositive", "a film 1", "\t1", " \t0", ""])
def test_bad_lines_of_sst2(sst2: Path, line: str) -> None:
    path = sst2 / "dev.tsv"
    path.write_text(f"fine\t1\n{line}\nfine\t1\n", encoding="utf-8")
    assert fault(Sst2(root=str(sst2))) == f"{path}, line 2: expected a sentence, a tab, and 0 or 1"


@pytest.mark.parametrize("line", ["a film", "__label__0 a film", "__label__6 a film", "__label__2", "__label__2 ", ""])
def test_bad_lines_of_sst5(sst5: Path, line: str) -> None:
    path = sst5 / "test.txt"
    path.write_text(f"__label__1 fine\n{line}\n__label__1 fine\n", encoding="utf-8")
    assert fault(Sst5(root=str(sst5))) == f"{path}, line 2: expected __label__1 to __label__5, then a sentence"


def test_empty_missing_and_no_text(sst2: Path) -> None:
    path = sst2 / "test.tsv"
    path.write_text("\n", encoding="utf-8")
    assert fault(Sst2(root=str(sst2))) == f"{path}: is empty"
    path.write_bytes(b"fine\t1\nna\xefve\t0\n")
    assert fault(Sst2(root=str(sst2))) == (
        f"{path}: is not UTF-8: byte 0xef at offset 9; convert it, for instance with iconv"
    )
    path.unlink()
    source = Sst2(root=str(sst2))
    assert fault(source).startswith(f"sst2: there is no file {path}; kattn data fetch sst2 downloads")
    assert [check.status for check in source.files()] == ["no checksum known"] * 2 + ["missing"]


def test_reviews_in_folders_take_turns(reviews: Path) -> None:
    for root in (reviews, reviews / "aclImdb"):
        source = Imdb(root=str(root), vocabulary="bytes", seq_len=9)
        assert source.missing() == ""
        facts = source.facts()
        assert (facts.classes, facts.seq_len, facts.vocabulary, facts.own_validation) == (2, 9, 256, False)
        splits = source.load()
        assert list(splits) == ["train", "test"]
        assert splits["train"].labels.tolist() == [0, 1, 0, 1]
        assert texts(source, splits["train"]) == ["bad<br />", "good film", "worse", "better"]
        assert texts(source, splits["test"]) == ["bad", "caf\u00e9"]
        assert source.truncated == {"train": 1, "test": 0}
        details = [check.detail for check in source.files()]
        assert details == ["2 reviews", "2 reviews", "1 reviews", "1 reviews"]


def test_reviews_in_parquet(tmp_path: Path) -> None:
    for split, labels in (("train", [0, 0, 1, 1]), ("test", [1])):
        path = tmp_path / "plain_text" / f"{split}-00000-of-00001.parquet"
        path.parent.mkdir(exist_ok=True)
        pq.write_table(pa.table({"text": [f"film {n}" for n in range(len(labels))], "label": labels}), path)
    source = Imdb(root=str(tmp_path))
    splits = source.load()
    assert splits["train"].labels.tolist() == [0, 1, 0, 1]
    assert texts(source, splits["train"]) == ["film 0", "film 2", "film 1", "film 3"]
    assert [check.detail for check in source.files()] == ["4 rows", "1 rows"]


@pytest.mark.parametrize(
    ("columns", "said"),
    [
        ({"text": ["a", "b"], "label": [0, -1]}, ", row 1: expected a review and a label 0 or 1"),
        ({"text": [" ", "b"], "label": [0, 1]}, ", row 0: expected a review and a label 0 or 1"),
        ({"text": ["a", None], "label": [0, 1]}, ", row 1: expected a review and a label 0 or 1"),
        ({"review": ["a"], "label": [0]}, ": has no column text; its columns are review, label"),
        ({"text": pa.array([], pa.string()), "label": pa.array([], pa.int64())}, ": has no rows"),
    ],
)
def test_bad_parquet(tmp_path: Path, columns: dict[str, Any], said: str) -> None:
    for split in ("train", "test"):
        pq.write_table(pa.table(columns), tmp_path / f"{split}.parquet")
    assert fault(Imdb(root=str(tmp_path))) == f"{tmp_path}/train.parquet{said}"


def test_bad_folders(reviews: Path) -> None:
    folder = reviews / "aclImdb" / "train" / "pos"
    (folder / "1_1.txt").write_text("", encoding="utf-8")
    assert fault(Imdb(root=str(reviews))) == f"{folder}/1_1.txt: is empty"
    for path in folder.iterdir():
        path.rename(path.with_suffix(".text"))
    assert fault(Imdb(root=str(reviews))) == f"{folder}: has no reviews, which are .txt files"
    for path in folder.iterdir():
        path.unlink()
    folder.rmdir()
    assert fault(Imdb(root=str(reviews))).startswith(f"imdb: there is no {folder}; kattn data fetch imdb downloads")


HUB = {"text": ["a fine\nfilm", "a\tdull film"], "label": [1, 0]}


@pytest.mark.parametrize(
    ("cls", "hub", "file"),
    [(Sst2, "SetFit/sst2", "dev.tsv"), (Sst5, "SetFit/sst5", "dev.txt"), (Imdb, "stanfordnlp/imdb", "test.parquet")],
)
def test_download_from_the_hub(cls: Any, hub: str, file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(name: str, *, split: str) -> Any:
        asked.append((name, split))
        return datasets.Dataset.from_dict(HUB)

    monkeypatch.setattr(datasets, "load_dataset", load)
    source = cls(root=str(tmp_path / "new"), download=True)
    splits = source.load()
    assert asked == [(hub, split) for split in splits]
    assert (tmp_path / "new" / file).is_file()
    assert splits["train"].labels.tolist() == ([0, 1] if cls is Imdb else [1, 0])
    written = texts(source, splits["train"])
    assert written == (["a dull film", "a fine\nfilm"] if cls is Imdb else ["a fine film", "a dull film"])


def test_no_network_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: Any, **__: Any) -> None:
        raise ConnectionError("no route to the hub\nand a long story")

    monkeypatch.setattr(datasets, "load_dataset", load)
    said = "imdb: stanfordnlp/imdb cannot be downloaded from the Hugging Face hub: no route to the hub"
    assert fault(Imdb(root=str(tmp_path), download=True)) == said
