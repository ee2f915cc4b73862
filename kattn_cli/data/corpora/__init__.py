"""Corpora of running text, for language models."""

from __future__ import annotations

from kattn_cli.data.corpora.corpus import TextCorpus
from kattn_cli.data.corpora.lambada import Lambada
from kattn_cli.data.corpora.openwebtext import OpenWebText
from kattn_cli.data.corpora.ptb import PennTreebank
from kattn_cli.data.corpora.text import Text
from kattn_cli.data.corpora.tokens import EncodedFile, EncodedText, encode_file, encode_source, encode_texts
from kattn_cli.data.corpora.wikitext import WikiText2, WikiText103

__all__ = [
    "EncodedFile",
    "EncodedText",
    "Lambada",
    "OpenWebText",
    "PennTreebank",
    "Text",
    "TextCorpus",
    "WikiText2",
    "WikiText103",
    "encode_file",
    "encode_source",
    "encode_texts",
]
