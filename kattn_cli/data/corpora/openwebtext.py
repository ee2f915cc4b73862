"""OpenWebText: 8 million web pages (Gokaslan and Cohen, 2019, http://Skylion007.github.io/OpenWebTextCorpus)."""

from __future__ import annotations

from kattn_cli.data.corpora.corpus import Context, Count, Kind, Size
from kattn_cli.data.corpora.named import HubText, NamedCorpus
from kattn_cli.data.corpora.source import Source, cut, files_at, source_at
from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.images import SplitName
from kattn_cli.data.vocabulary.gpt2 import END_OF_TEXT

SHARES = (0.999, 0.0005, 0.0005)
"""Of training, validation and test, since it comes in one."""


class OpenWebText(NamedCorpus):
    """OpenWebText, one text, cut in order into training (99.9 %), validation and test.

    ``<|endoftext|>`` stands after each page.

    Args:
        root: the folder of ``openwebtext.txt``, or of several ``.txt``, taken in the order of their names.
        download: see :class:`~kattn_cli.data.corpora.named.NamedCorpus`, and so for the rest.
    """

    name = "openwebtext"
    description = "OpenWebText, 8 million web pages, 38 GB of text"
    how_to_get = "kattn data fetch openwebtext downloads it, and so does download: true"
    names = ("openwebtext.txt",)
    hub = HubText("Skylion007/openwebtext", end=END_OF_TEXT)

    def __init__(
        self,
        *,
        root: str | None = None,
        download: bool = False,
        vocabulary: Kind = "bpe",
        vocabulary_size: Size | None = None,
        min_count: Count = 1,
        vocabulary_from: str | None = "gpt2",
        context: Context = 1024,
    ) -> None:
        super().__init__(
            root=root,
            download=download,
            vocabulary=vocabulary,
            vocabulary_size=vocabulary_size,
            min_count=min_count,
            vocabulary_from=vocabulary_from,
            context=context,
        )

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if not files_at(str(self.root)):
            return f"there is no {self.names[0]} in {self.root}; {self.how_to_get}"
        return self.missing_vocabulary()

    def sources(self) -> dict[SplitName, Source]:
        """See :class:`~kattn_cli.data.corpora.corpus.TextCorpus`."""
        train, validation, test = cut(source_at(str(self.root)), SHARES)
        return {"train": train, "validation": validation, "test": test}

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        checks = [FileCheck(path, "no checksum known") for path in files_at(str(self.root))]
        return checks or [FileCheck(self.root / self.names[0], "missing")]

    def fetch(self) -> None:
        """Download it from the hub into ``root``, if no text is there."""
        if not files_at(str(self.root)):
            self.fetch_files({"train": self.root / self.names[0]})
