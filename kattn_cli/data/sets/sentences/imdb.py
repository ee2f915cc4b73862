"""IMDB: film reviews, liked or not (Maas et al., 2011, https://ai.stanford.edu/~amaas/data/sentiment/).

With ``vocabulary: bytes`` and ``seq_len: 4000`` the Text task of Long-Range Arena (Tay et al., 2021, §2.2), which
trains on all 25,000 and chooses by its test reviews, since there are no others: ``choose_on: test``. A review's
``<br />`` stays, there and here.
"""

from __future__ import annotations

import os
from pathlib import Path

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.parquet import check_parquet, parquet_files, read_parquet
from kattn_cli.data.sets.sentences.sentence_set import Labelled, SentenceSet, from_hub, text_of
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing

HUB = "stanfordnlp/imdb"
_FOLDERS = ("neg", "pos")


class Imdb(SentenceSet):
    """25,000 reviews to train on, 25,000 to test on, half of each liked; in turns, a negative and a positive one.

    ``root`` is ``aclImdb`` or the folder that holds it, with ``{train,test}/{neg,pos}/*.txt``; or it has parquet files
    named for their splits, with columns ``text`` and ``label``, as the hub's ``stanfordnlp/imdb`` has.
    """

    name = "imdb"
    description = "50,000 film reviews, liked or not (Long-Range Arena's Text, by bytes)"
    how_to_get = (
        f"kattn data fetch imdb downloads {HUB} from the Hugging Face hub, and so does download: true; or unpack "
        "aclImdb_v1.tar.gz and give its folder as root"
    )
    classes = 2
    splits = ("train", "test")

    def read(self, split: SplitName) -> Labelled:
        """See :class:`~kattn_cli.data.sets.sentences.sentence_set.SentenceSet`."""
        files = self._parquet(split)
        found = _from_parquet(files) if files else _from_folder(self._folder / split)
        return _in_turns(found)

    def missing_files(self) -> str:
        """See :class:`~kattn_cli.data.sets.sentences.sentence_set.SentenceSet`."""
        path = next((check.path for check in self.files() if check.status == "missing"), None)
        return f"there is no {path}; {self.how_to_get}" if path else ""

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`: the parquet files, or one line a folder of reviews."""
        checks: list[FileCheck] = []
        for split in self.splits:
            checks += [check_parquet(file) for file in self._parquet(split)] or [
                _check(self._folder / split / name) for name in _FOLDERS
            ]
        return checks

    def fetch(self) -> None:
        """Let ``datasets`` download it from the hub, and write ``{train,test}.parquet`` into ``root``."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        for split in self.splits:
            found = from_hub(self.name, HUB, split)
            path = self.root / f"{split}.parquet"
            with faults_as(DataError, path), replacing(path) as new:
                pq.write_table(pa.table(found._asdict()), new)

    @property
    def _folder(self) -> Path:
        inside = self.root / "aclImdb"
        return inside if inside.is_dir() else self.root

    def _parquet(self, split: SplitName) -> list[Path]:
        return parquet_files(self.root, None, split) or parquet_files(self.root, "plain_text", split)


def _check(folder: Path) -> FileCheck:
    if not folder.is_dir():
        return FileCheck(folder, "missing")
    return FileCheck(folder, "no checksum known", f"{len(_reviews(folder)):,} reviews")


def _reviews(folder: Path) -> list[str]:
    return sorted(entry.path for entry in os.scandir(folder) if entry.name.endswith(".txt"))


def _from_folder(folder: Path) -> Labelled:
    found = Labelled([], [])
    for label, name in enumerate(_FOLDERS):
        paths = _reviews(folder / name)
        if not paths:
            raise DataError(f"{folder / name}: has no reviews, which are .txt files")
        found.text.extend(text_of(Path(path)) for path in paths)
        found.label.extend([label] * len(paths))
    return found


def _from_parquet(files: list[Path]) -> Labelled:
    table = read_parquet(files)
    for column in Labelled._fields:
        if column not in table.column_names:
            there = ", ".join(table.column_names)
            raise DataError(f"{files[0]}: has no column {column}; its columns are {there}")
    found = Labelled(table.column("text").to_pylist(), table.column("label").to_pylist())
    if not found.text:
        raise DataError(f"{files[0]}: has no rows")
    for row, (text, label) in enumerate(zip(*found, strict=True)):
        if label not in (0, 1) or not isinstance(text, str) or not text.strip():
            raise DataError(f"{files[0]}, row {row}: expected a review and a label 0 or 1")
    return found


def _in_turns(found: Labelled) -> Labelled:
    """Return the first of each class, then the second of each, and so on."""
    seen = [0] * 2
    keys = []
    for label in found.label:
        keys.append((seen[label], label))
        seen[label] += 1
    order = sorted(range(len(keys)), key=keys.__getitem__)
    return Labelled([found.text[row] for row in order], [found.label[row] for row in order])
