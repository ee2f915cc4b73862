"""WikiText-2 and WikiText-103: good articles of Wikipedia (Merity et al., 2017, arXiv:1609.07843)."""

from __future__ import annotations

from typing import ClassVar

from kattn_cli.data.corpora.corpus import Context, Count, Kind, Size
from kattn_cli.data.corpora.named import HubText, NamedCorpus


class WikiText(NamedCorpus):
    """WikiText of either size; see :class:`~kattn_cli.data.corpora.named.NamedCorpus`.

    Args:
        root: the folder of ``wiki.train.tokens``, ``wiki.valid.tokens`` and ``wiki.test.tokens``, or of
            ``<name>-train.txt`` and so on.
        raw: the text as it was written, ``wiki.train.raw`` or ``<name>-raw-train.txt``, in place of that whose rare
            words are ``<unk>``; for characters, bytes and BPE.
    """

    config: ClassVar[str]

    def __init__(
        self,
        *,
        root: str | None = None,
        download: bool = False,
        raw: bool = False,
        vocabulary: Kind = "words",
        vocabulary_size: Size | None = None,
        min_count: Count = 1,
        vocabulary_from: str | None = None,
        context: Context = 256,
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
        self.hub = HubText("Salesforce/wikitext", f"{self.config}-raw-v1" if raw else f"{self.config}-v1")
        self.names = (
            ("wiki.{}.raw", f"{self.name}-raw-{{}}.txt") if raw else ("wiki.{}.tokens", f"{self.name}-{{}}.txt")
        )


class WikiText2(WikiText):
    """WikiText-2, with 2 million words to train on."""

    name = "wikitext2"
    config = "wikitext-2"
    description = "WikiText-2, 2.4 million words of Wikipedia"
    how_to_get = "kattn data fetch wikitext2 downloads it, and so does download: true"


class WikiText103(WikiText):
    """WikiText-103, with 103 million words to train on."""

    name = "wikitext103"
    config = "wikitext-103"
    description = "WikiText-103, 103 million words of Wikipedia"
    how_to_get = "kattn data fetch wikitext103 downloads it, and so does download: true"
