"""Sentences and reviews, each with a class: SST-2, SST-5 and IMDB."""

from __future__ import annotations

from kattn_cli.data.sets.sentences.imdb import Imdb
from kattn_cli.data.sets.sentences.sst import Sst2, Sst5

__all__ = ["Imdb", "Sst2", "Sst5"]
