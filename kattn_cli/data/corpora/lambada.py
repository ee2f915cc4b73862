"""LAMBADA, passages whose last word needs all of them (Paperno et al., 2016, arXiv:1606.06031); to evaluate on."""

from __future__ import annotations

from kattn_cli.data.corpora.corpus import Context
from kattn_cli.data.corpora.named import HubText, NamedCorpus
from kattn_cli.data.text import TextSplits
from kattn_cli.errors import DataError


class Lambada(NamedCorpus):
    """LAMBADA: 5,153 passages, one a line; there is no text of this kind to train on.

    Args:
        root: the folder of ``lambada-test.txt`` or ``lambada_test_plain_text.txt``.
        download: see :class:`~kattn_cli.data.corpora.named.NamedCorpus`.
        context: how many tokens a model sees at most.
    """

    name = "lambada"
    description = "LAMBADA, 5,153 passages to evaluate a language model on"
    how_to_get = "kattn data fetch lambada downloads it, and so does download: true"
    names = ("lambada-{}.txt", "lambada_{}_plain_text.txt")
    hub = HubText("EleutherAI/lambada_openai", "default")
    split_names = {"test": "test"}  # noqa: RUF012 - declared a class variable above

    def __init__(self, *, root: str | None = None, download: bool = False, context: Context = 128) -> None:
        super().__init__(root=root, download=download, vocabulary="bytes", context=context)

    def load(self) -> TextSplits:
        """Refuse to train: a model is trained on another corpus.

        Raises:
            DataError: always.
        """
        raise DataError(
            f"lambada: has no training text; train on another corpus, then kattn eval RUN --corpus lambada={self.root}"
        )
