"""Corpora by name: which files they find, what they fetch, and what they say of those that are not there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import datasets
import pytest

from kattn_cli.data.corpora import Lambada, OpenWebText, PennTreebank, WikiText2, WikiText103, encode_source
from kattn_cli.data.corpora.named import NamedCorpus
from kattn_cli.data.vocabulary.bytes import Bytes
from kattn_cli.data.vocabulary.words import Words
from kattn_cli.errors import DataError
from kattn_cli.recipe.options import with_defaults

CORPORA: list[type[NamedCorpus]] = [WikiText2, WikiText103, PennTreebank, OpenWebText, Lambada]


@pytest.fixture(autouse=True)
def _caches_are_the_tests_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "kattn"))


def write_splits(folder: Path, pattern: str, splits: str = "train valid test") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for split in splits.split():
        (folder / pattern.format(split)).write_text(f" the {split} <unk> \n", encoding="utf-8")


@pytest.mark.parametrize(
    ("cls", "pattern", "raw"),
    [
        (WikiText2, "wiki.{}.tokens", False),
        (WikiText2, "wikitext2-{}.txt", False),
        (WikiText2, "wiki.{}.raw", True),
        (WikiText103, "wikitext103-raw-{}.txt", True),
        (PennTreebank, "ptb.{}.txt", False),
        (PennTreebank, "ptb-{}.txt", False),
    ],
)
def test_files_under_their_usual_names(cls: type[NamedCorpus], pattern: str, raw: bool, tmp_path: Path) -> None:
    write_splits(tmp_path / "there", pattern)
    options: dict[str, Any] = {"raw": True} if raw else {}
    corpus = cls(root=str(tmp_path / "there"), context=2, **options)
    assert corpus.missing() == ""
    assert [check.path.name for check in corpus.files()] == [pattern.format(s) for s in ("train", "valid", "test")]
    vocabulary, splits = corpus.load()
    assert vocabulary == Words(("<unk>", "<eos>", "the", "train"))
    assert {name: split.tokens.tolist() for name, split in splits.items()} == {
        "train": [2, 3, 0, 1],
        "validation": [2, 0, 0, 1],
        "test": [2, 0, 0, 1],
    }
    assert "".join(corpus.text("test")) == " the test <unk> \n"


def test_without_its_training_text_it_says_what_is_there_and_how_to_train_on_that(tmp_path: Path) -> None:
    write_splits(tmp_path, "ptb-{}.txt", "valid test")
    corpus = PennTreebank(root=str(tmp_path))
    assert corpus.missing() == (
        f"{tmp_path} has ptb-valid.txt and ptb-test.txt, and no training text (ptb.train.txt or ptb-train.txt); "
        "kattn data fetch ptb downloads it, and so does download: true; or train on what is there with "
        f"data.name: text, data.train: {tmp_path}/ptb-valid.txt and data.test: {tmp_path}/ptb-test.txt"
    )
    with pytest.raises(DataError, match=r"^ptb: .* has ptb-valid.txt and ptb-test.txt"):
        corpus.load()
    assert list(corpus.sources()) == ["validation", "test"]
    assert encode_source(corpus.sources()["test"], Bytes()).tokens.tobytes() == b" the test <unk> \n"
    with pytest.raises(DataError, match="ptb: has no train split here, only validation, test"):
        corpus.text("train")


def test_without_any_file_it_says_where_it_looked(tmp_path: Path) -> None:
    root = tmp_path / "kattn" / "wikitext2"
    assert WikiText2().missing().startswith(f"there is no wiki.train.tokens or wikitext2-train.txt in {root}; kattn")
    assert WikiText2().places() == [root]
    assert [check.status for check in WikiText2().files()] == ["missing"] * 3


def test_lambada_is_for_evaluation_alone(tmp_path: Path) -> None:
    write_splits(tmp_path, "lambada_{}_plain_text.txt", "test")
    corpus = Lambada(root=str(tmp_path))
    assert corpus.missing() == ""
    assert "".join(corpus.text("test")) == " the test <unk> \n"
    with pytest.raises(DataError) as error:
        corpus.load()
    assert str(error.value) == (
        f"lambada: has no training text; train on another corpus, then kattn eval RUN --corpus lambada={tmp_path}"
    )


def test_openwebtext_is_cut_and_is_gpt2s_by_default(tmp_path: Path) -> None:
    assert with_defaults(OpenWebText, {})["vocabulary_from"] == "gpt2"
    assert OpenWebText(root=str(tmp_path)).missing().startswith(f"there is no openwebtext.txt in {tmp_path}; kattn")
    (tmp_path / "openwebtext.txt").write_text("123456789\n" * 4000, encoding="utf-8")
    corpus = OpenWebText(root=str(tmp_path), vocabulary="bytes", vocabulary_from=None, context=9)
    assert {name: split.bytes_ for name, split in corpus.load()[1].items()} == {
        "train": 39_960,
        "validation": 20,
        "test": 20,
    }


@pytest.mark.parametrize("cls", CORPORA)
def test_what_is_fetched_is_written_once(
    cls: type[NamedCorpus], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    def load_dataset(path: str, config: str | None, *, split: str, revision: str | None) -> datasets.Dataset:
        asked.append(split)
        assert revision == ("refs/convert/parquet" if "ptb" in path else None)
        column = "sentence" if "ptb" in path else "text"
        return datasets.Dataset.from_dict({column: [f"{split} é", "", "with its end\n"]})

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    corpus = cls(root=str(tmp_path / "new"))
    assert corpus.missing()
    corpus.fetch()
    corpus.fetch()
    assert not any(check.status == "missing" for check in corpus.files())
    if cls is OpenWebText:
        assert asked == ["train"]
        written = (tmp_path / "new" / "openwebtext.txt").read_text(encoding="utf-8")
        assert written == "train é<|endoftext|><|endoftext|>with its end\n<|endoftext|>"
    elif cls is Lambada:
        assert asked == ["test"]
    else:
        assert asked == ["train", "validation", "test"]
    if cls is not OpenWebText:
        assert "".join(corpus.text("test")) == "test é\n\nwith its end\n"


def test_download_fetches_and_a_failure_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def load_dataset(*args: object, **kwargs: object) -> None:
        raise ConnectionError("no network\nand much more")

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    with pytest.raises(DataError) as error:
        WikiText2(root=str(tmp_path), download=True).load()
    assert str(error.value) == (
        "wikitext2: Salesforce/wikitext cannot be downloaded from the Hugging Face hub: no network; "
        "instead, give the folder of its plain files as root"
    )
    assert not list(tmp_path.glob("wiki*"))
