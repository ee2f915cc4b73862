"""What RPC-Attention costs (E.9)."""

from __future__ import annotations

from functools import partial

from kattn_cli.claims.finding import Claim
from kattn_cli.claims.model_cost import share_of

BASE = "imagenet/symvit_tiny"
OURS = ("imagenet/rpc_symvit_tiny", "imagenet/rpc_symvit_tiny_5", "imagenet/rpc_symvit_tiny_6")
ALL = "imagenet/rpc_all_symvit_tiny"
SLIGHTLY = 1.2
"""Times the baseline's cost; the paper's own greatest in training is 1.165, of two iterations in all layers."""
COMMAND = f"kattn complexity --model {BASE} {OURS[0]} {ALL}"

CLAIMS = [
    *(
        Claim(
            "E.9, Table 13",
            f"RPC-Attention takes only slightly more {quantity} than symmetric attention in training.",
            f"{quantity} of a training step over the baseline's, one measurement; holds below {SLIGHTLY:g}",
            COMMAND,
            partial(share_of, BASE, (*OURS, ALL), "training step", quantity, SLIGHTLY),
        )
        for quantity in ("time", "memory")
    ),
    *(
        Claim(
            "E.9, Table 13",
            f"RPC-Attention takes about as much {quantity} as symmetric attention at test time.",
            f"{quantity} of a forward pass over the baseline's, one measurement; holds below {SLIGHTLY:g}",
            COMMAND,
            partial(share_of, BASE, (*OURS, ALL), "forward", quantity, SLIGHTLY),
        )
        for quantity in ("time", "memory")
    ),
]
