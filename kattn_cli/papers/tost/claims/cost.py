"""What ToST costs: parameters, time and memory (Tables 1, 2 and 4, Figures 1, 6 and 8)."""

from __future__ import annotations

from functools import partial

from kattn_cli.papers.claim import Claim, Fact, Finding, Kind, Scale, Truth
from kattn_cli.papers.cost_claims import LINEAR, LONG, decoding, less_than, scaling, share_of
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.tost import PAPER

OTHERS = ("softmax (slow)", "softmax", "mssa", "xca")
FIGURE = "kattn complexity --attention tssa --attention xca --attention mssa --dim 384 --heads 8 --pass forward"
MODELS = "kattn model-costs decoder/softmax decoder/tssa --pass forward"
QUANTITIES = (("time", "milliseconds"), ("memory", "peak_mib"))


def _fewer_parameters(evidence: Evidence) -> list[Finding]:
    models = ("tssa small", "xca small")
    prints = PAPER.ratio("table2", "model", "parameters_m", models)
    found: list[Finding] = []
    for label, ours, theirs in evidence.pairs("metrics", "tost", "xcit"):
        manifests = [evidence.manifest(rows["folder"].iloc[0]) for rows in (ours, theirs)]
        if not all("parameters" in one for one in manifests):
            continue
        counts = [int(one["parameters"]) for one in manifests]
        share = counts[0] / counts[1]
        truth = Truth.true if share < 1 else Truth.false
        beside = f"{counts[0]:,} against {counts[1]:,}"
        found.append(Fact(label, beside, prints, value=share, low=share, high=share, truth=truth))
    return found


CLAIMS = [
    Claim(
        "§4.2, Table 2",
        "ToST has fewer parameters than XCiT of the same size.",
        "parameters over XCiT's; holds below 1",
        "kattn train audit",
        _fewer_parameters,
        kind=Kind.arithmetic,
    ),
    Claim(
        "Table 1, Figure 1",
        "TSSA is linear in the number of tokens.",
        f"exponent of time (forward + backward) in N, one measurement with its interval; holds below {LINEAR:g}, our "
        "bound",
        "kattn benchmark time_exponents",
        partial(scaling, "tssa"),
        kind=Kind.measurement,
        scale=Scale(tokens=LONG),
    ),
    *(
        Claim(
            "D.2, Figures 1 and 6",
            f"A layer of TSSA takes less {name} than those of a ViT, CRATE and XCiT.",
            f"{name} of a forward pass over the other's, at the most tokens measured, one measurement; holds below 1. "
            'The paper has the N × N matrix of "softmax (slow)" for ViT, at 10,000 tokens 10 times the time and almost '
            "100 times the memory; softmax and mssa (CRATE) are fused here",
            FIGURE,
            partial(less_than, "tssa", OTHERS, quantity),
            kind=Kind.measurement,
            scale=Scale(tokens=LONG),
        )
        for name, quantity in QUANTITIES
    ),
    *(
        Claim(
            "D.2, Figure 8",
            f"Causal TSSA takes less {name} than softmax attention for one more token.",
            f"{name} over softmax's, behind each context, one measurement; holds below 1",
            "kattn decoding --attention tssa",
            partial(decoding, "tssa", name),
            kind=Kind.arithmetic if name == "memory" else Kind.measurement,
        )
        for name, _ in QUANTITIES
    ),
    *(
        Claim(
            "§4.3, Table 4",
            f"A language model of GPT-2's base size takes less {name} with TSSA.",
            f"{name} of a forward pass over that with softmax attention, one measurement; holds below 1",
            MODELS,
            partial(share_of, "decoder/softmax", ("decoder/tssa",), "forward", name, 1.0),
            kind=Kind.measurement,
        )
        for name in ("time", "memory")
    ),
]
