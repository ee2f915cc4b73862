"""What RPC-Attention costs (E.9)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim, Kind
from kattn_cli.papers.cost_claims import share_of

BASE = "imagenet/symvit_tiny"
OURS = ("imagenet/rpc_symvit_tiny", "imagenet/rpc_symvit_tiny_5", "imagenet/rpc_symvit_tiny_6")
ALL = "imagenet/rpc_all_symvit_tiny"
COMMAND = f"kattn model-costs {BASE} {OURS[0]} {ALL}"

PASSES = {"training step": "training step", "forward": "forward pass"}

CLAIMS = [
    Claim(
        "E.9, Table 13",
        f"RPC-Attention takes {amount} {quantity} {than}.",
        f"{quantity} of a {PASSES[what]} over the baseline's, one measurement; a number beside the paper's, which says "
        "of no bound what is slight",
        COMMAND,
        partial(share_of, BASE, (*OURS, ALL), what, quantity, None),
        kind=Kind.measurement,
    )
    for what, amount, than in (
        ("training step", "only slightly more", "than symmetric attention in training"),
        ("forward", "about as much", "as symmetric attention at test time"),
    )
    for quantity in ("time", "memory")
]
