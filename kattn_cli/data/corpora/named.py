"""The base class of published corpora: plain files under their usual names, or rows of the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from kattn_cli.data.corpora.corpus import Context, Count, Kind, Size, TextCorpus
from kattn_cli.data.corpora.source import Source, source_at
from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.network import hub
from kattn_cli.data.reading.parquet import first_line
from kattn_cli.data.reading.storage import default_root, downloading
from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing

_ROWS = 1000


@dataclass(frozen=True)
class HubText:
    """The place of a corpus on the hub: one row a line, a passage or a document.

    ``column``: of the text. ``end``: what stands between rows, unless they end with it.
    """

    path: str
    config: str | None = None
    revision: str | None = None
    column: str = "text"
    end: str = "\n"

    def write(self, split: str, path: Path) -> None:
        """Download ``split`` through ``datasets``, which keeps a copy of its own, and write it to ``path``.

        Raises:
            DataError: in one line, if it cannot be downloaded or written.
        """
        import datasets

        with hub() as silent:
            try:
                rows = datasets.load_dataset(self.path, self.config, split=split, revision=self.revision)
            except Exception as error:  # datasets raises nearly anything, its own and its readers'
                reason = silent or first_line(error)
                raise DataError(f"{self.path} cannot be downloaded from the Hugging Face hub: {reason}") from None
        with faults_as(DataError, path), replacing(path) as new, new.open("w", encoding="utf-8", newline="") as file:
            file.writelines(self._texts(rows))

    def _texts(self, rows: Any) -> Iterator[str]:
        for batch in rows.iter(batch_size=_ROWS):
            for text in batch[self.column]:
                yield text if text.endswith(self.end) else text + self.end


HUB_SPLITS: Mapping[SplitName, str] = {"train": "train", "validation": "validation", "test": "test"}
INSTEAD = "instead, give the folder of its plain files as root"


class NamedCorpus(TextCorpus):
    """A corpus of one file a split.

    Args:
        root: the folder of the files, by default ``$KATTN_DATA/<name>`` or ``~/.cache/kattn/<name>``.
        download: whether to fetch what is missing when it is needed.
        vocabulary: see :class:`~kattn_cli.data.corpora.corpus.TextCorpus`, and so for the rest.
    """

    hub: HubText
    names: tuple[str, ...]
    """What its files are called, but for the split; the first is what :meth:`fetch` writes."""

    split_names: ClassVar[Mapping[SplitName, str]] = {"train": "train", "validation": "valid", "test": "test"}
    """The splits as its files call them."""

    def __init__(
        self,
        *,
        root: str | None = None,
        download: bool = False,
        vocabulary: Kind = "words",
        vocabulary_size: Size | None = None,
        min_count: Count = 1,
        vocabulary_from: str | None = None,
        context: Context = 128,
    ) -> None:
        super().__init__(
            vocabulary=vocabulary,
            vocabulary_size=vocabulary_size,
            min_count=min_count,
            vocabulary_from=vocabulary_from,
            context=context,
        )
        self.root = Path(root).expanduser() if root else default_root(self.name)
        self.download = download

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`; where other splits are there, how to train on one of them."""
        found = self._found()
        for split, path in found.items():
            if path is None:
                there = [other for other in found.values() if other]
                names = " or ".join(self._names(split))
                if split == "train" and there:
                    return (
                        f"{self.root} has {' and '.join(other.name for other in there)}, and no training text "
                        f"({names}); {self.how_to_get}; or train on what is there with data.name: text, "
                        f"data.train: {there[0]} and data.test: {there[-1]}"
                    )
                return f"there is no {names} in {self.root}; {self.how_to_get}"
        return self.missing_vocabulary()

    def sources(self) -> dict[SplitName, Source]:
        """Return the sources of the splits whose files are there."""
        return {split: source_at(str(path)) for split, path in self._found().items() if path}

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root]

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [
            FileCheck(path, "no checksum known", split)
            if path is not None
            else FileCheck(self.root / self._names(split)[0], "missing", split)
            for split, path in self._found().items()
        ]

    def fetch(self) -> None:
        """Download what is missing from the hub into ``root``."""
        missing = [split for split, path in self._found().items() if path is None]
        self.fetch_files({split: self.root / self._names(split)[0] for split in missing})

    def fetch_files(self, files: Mapping[SplitName, Path]) -> None:
        """Download each split to its file, but for those that are there when others are done downloading.

        Raises:
            DataError: in one line, if one cannot be downloaded.
        """
        with downloading(self.name, self.root, INSTEAD):
            for split, path in files.items():
                if not path.exists():
                    try:
                        self.hub.write(HUB_SPLITS[split], path)
                    except DataError as error:
                        raise DataError(f"{self.name}: {error}; {INSTEAD}") from None

    def _names(self, split: SplitName) -> list[str]:
        return [name.format(self.split_names[split]) for name in self.names]

    def _found(self) -> dict[SplitName, Path | None]:
        found: dict[SplitName, Path | None] = {}
        for split in self.split_names:
            paths = [self.root / name for name in self._names(split)]
            found[split] = next((path for path in paths if path.is_file()), None)
        return found
