"""Penn Treebank as Mikolov et al. (2010) prepared it: no capitals, 10,000 words, the rest ``<unk>``, numbers ``N``."""

from __future__ import annotations

from kattn_cli.data.corpora.named import HubText, NamedCorpus


class PennTreebank(NamedCorpus):
    """Penn Treebank.

    ``root``: the folder of ``ptb.train.txt``, ``ptb.valid.txt`` and ``ptb.test.txt``, or of ``ptb-train.txt`` …
    """

    name = "ptb"
    description = "Penn Treebank, 1 million words of the Wall Street Journal"
    how_to_get = "kattn data fetch ptb downloads it, and so does download: true"
    names = ("ptb.{}.txt", "ptb-{}.txt")
    hub = HubText("ptb-text-only/ptb_text_only", revision="refs/convert/parquet", column="sentence")
