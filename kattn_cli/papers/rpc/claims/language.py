"""RPC-Attention's paper on language: perplexity (§4.2) and fine-tuning on sentences (E.8)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim
from kattn_cli.papers.pairs import better_on_average, language
from kattn_cli.papers.paper import Paper
from kattn_cli.papers.rpc import PAPER
from kattn_cli.tables.margins import CLEAN, PERPLEXED

MODELS = ("rpc", "symmetric")
TEST: tuple[Paper, str, str] = (PAPER, "table3", "WikiText-103 test")

CLAIMS = [
    Claim(
        "Table 3",
        "RPC-Attention has a lower perplexity than symmetric attention on clean text.",
        "difference of test perplexity in % of it, paired by seed; better below 0",
        "kattn eval language/shakespeare",
        partial(language, "perplexity", MODELS, (*TEST, "perplexity"), 0.0),
        margin=PERPLEXED,
    ),
    Claim(
        "Table 3",
        "RPC-Attention has a lower perplexity than symmetric attention where words are swapped.",
        "difference of test perplexity in % of it, mean over shares of swapped words, paired by seed; better below 0",
        "kattn attack language/shakespeare --word-swap",
        partial(language, "swapped_perplexity", MODELS, (*TEST, "swapped_perplexity"), 0.0),
        margin=PERPLEXED,
    ),
    Claim(
        "Tables 11 and 12",
        "RPC-Attention, at fine-tuning alone, is more accurate than symmetric attention on sentences.",
        "difference of validation top-1, each data set by itself, paired by seed; better above 0",
        "kattn eval sentences sentences/moe --split validation",
        partial(better_on_average, PAPER, "table11", "sentences", "rpc", ("symmetric",), 0.0, metric="validation_top1"),
        margin=CLEAN,
    ),
    Claim(
        "Table 11",
        "RPC-Attention, at fine-tuning alone, is more accurate than softmax attention on sentences.",
        "difference of validation top-1, each data set by itself, paired by seed; better above 0",
        "kattn eval sentences/moe --split validation",
        partial(
            better_on_average,
            PAPER,
            "table11",
            "sentences",
            "rpc asymmetric",
            ("softmax",),
            0.0,
            metric="validation_top1",
        ),
        margin=CLEAN,
    ),
]
