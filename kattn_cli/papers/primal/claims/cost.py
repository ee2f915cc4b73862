"""What Primal-Attention costs (Tables 2, 4, 6 and 7), and the talk on faster kernel PCA."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim, Kind, Scale
from kattn_cli.papers.cost_claims import LINEAR, LONG, race, scaling, share_of
from kattn_cli.papers.pairs import shares
from kattn_cli.papers.primal import PAPER

MODELS = ("primal", "primal_plus")
LONG_SERIES = ("EthanolConcentration", "SelfRegulationSCP1", "SelfRegulationSCP2", "Heartbeat")
"""The archive's sets of 400 time steps and more; on JapaneseVowels, of 29, the paper's own times are softmax's."""
DEIT = ("imagenet/deit_small", "imagenet/primal_plus_deit_small")
UEA = ("§5, Table 2", "table2", "series", "UEA time series", "series/japanese_vowels", Scale(data=LONG_SERIES))
LRA = ("§5, Table 4", "table4", "lra", "Long-Range Arena", "lra/small/listops lra/small/image", Scale(tokens=1_000))

CLAIMS = [
    *(
        Claim(
            where,
            f"Primal. and Primal.+ take less {quantity} than the Transformer on {on}.",
            f"{measured} over softmax's, each data set by itself, paired by seed; holds below 1, with its range "
            "over seeds",
            f"kattn train {recipes}",
            partial(shares, PAPER, table, kind, metric, MODELS, 1.0),
            kind=Kind.measurement,
            scale=scale,
        )
        for where, table, kind, on, recipes, scale, metric, quantity, measured in (
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
            kind=Kind.measurement,
            scale=Scale(batch=256),
        )
        for quantity in ("time", "memory")
    ),
    Claim(
        "Tables 2, 4, 6, 7",
        "Primal-Attention is linear in the number of tokens.",
        f"exponent of time (forward + backward) in N, one measurement with its interval; holds below {LINEAR:g}, our "
        "bound",
        "kattn benchmark time_exponents",
        partial(scaling, "primal"),
        kind=Kind.measurement,
        scale=Scale(tokens=LONG),
    ),
    Claim(
        "the talk: Faster KPCA",
        "The dual solver with L-BFGS is faster than a randomised SVD at a tolerance of 10⁻² (3.7 to 9.2 times).",
        "time of the randomised SVD over that of the dual solver, median and range over rounds; holds above 1",
        "kattn kernel-pca",
        race,
        kind=Kind.measurement,
        scale=Scale(points=7_000),
    ),
]
