"""What corpora with a name share: plain files under the names that they usually have, or the Hugging Face hub."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from kattn_cli.data.corpora.corpus import Context, Count, Kind, Size, TextCorpus
from kattn_cli.data.corpora.hub import HubText
from kattn_cli.data.corpora.source import Source, source_at
from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.reading.download import downloading
from kattn_cli.data.roots import default_root
from kattn_cli.errors import DataError

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
        """Those of the splits whose files are there."""
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
