"""What Primal-Attention costs (Tables 2, 4, 6 and 7), and the talk on faster kernel PCA."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim
from kattn_cli.papers.cost_claims import race, scaling, share_of
from kattn_cli.papers.pairs import cheaper
from kattn_cli.papers.primal import PAPER

MODELS = ("primal", "primal_plus")
NOT_DENIED = "What is shorter than the paper's sequences, or of a data set that it has no number of, cannot deny it"
DEIT = ("imagenet/deit_small", "imagenet/primal_plus_deit_small")
UEA = ("§5, Table 2", "table2", "series", "UEA time series", "kattn train series/japanese_vowels")
LRA = ("§5, Table 4", "table4", "lra", "Long-Range Arena", "kattn train lra/small/listops lra/small/image")

CLAIMS = [
    *(
        Claim(
            where,
            f"Primal. and Primal.+ take less {quantity} than the Transformer on {on}.",
            f"{measured} over softmax's, each data set by itself, paired by seed; holds below 1. {NOT_DENIED}",
            command,
            partial(cheaper, PAPER, table, kind, metric, MODELS),
        )
        for where, table, kind, on, command, metric, quantity, measured in (
            (*UEA, "seconds_per_epoch", "time", "time an epoch"),
            (*UEA, "memory_gb", "memory", "peak memory"),
            (*LRA, "seconds_per_1k_steps", "time", "time a step"),
            (*LRA, "memory_gb", "memory", "peak memory"),
        )
    ),
    *(
        Claim(
            "§5, Table 7(a)",
            f"Primal.+ takes less training {quantity} than DeiT-Small on ImageNet.",
            f"{quantity} of a training step over DeiT-Small's, one measurement; holds below 1",
            f"kattn model-costs {' '.join(DEIT)} --pass forward+backward",
            partial(share_of, DEIT[0], (DEIT[1],), "training step", quantity, 1.0),
        )
        for quantity in ("time", "memory")
    ),
    Claim(
        "Tables 2, 4, 6, 7",
        "Primal-Attention is linear in the number of tokens.",
        "exponent of time (forward + backward) in N, one measurement; holds below 1.2",
        "kattn complexity",
        partial(scaling, "primal"),
    ),
    Claim(
        "the talk: Faster KPCA",
        "The dual solver with L-BFGS is faster than a randomised SVD at a tolerance of 10⁻² (3.7 to 9.2 times).",
        "time of the randomised SVD over that of the dual solver, median and range over rounds; holds above 1",
        "kattn kernel-pca",
        race,
    ),
]
