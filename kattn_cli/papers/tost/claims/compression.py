"""The ToST paper on what TSSA compresses (§4.1), and on its subspaces (D.4)."""

from __future__ import annotations

from kattn_cli.papers.claim import Claim, Finding, against_bound, over_seeds
from kattn_cli.papers.evidence import Evidence, by_seed, first, last, less, shown

AUDIT = "kattn audit audit"


def _falls_with_depth(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/compression"):
        out = last(rows)[lambda part: part["stage"] == "after"]
        by_split = {}
        for split, part in out.groupby("split"):
            ends = [by_seed(part[part["layer"] == one], "rate") for one in (part["layer"].max(), part["layer"].min())]
            by_split[split] = less(*ends)
        rates = out[out["split"] == "validation"].groupby("layer")["rate"].mean()
        steps = ", ".join(f"{rate:.3g}" for rate in rates)
        beside = f"by layer {steps}; on training images {shown(by_split['train'])}"
        found.append(against_bound(label, by_split["validation"], below=0, beside=beside))
    return found


def _each_layer_descends(evidence: Evidence) -> list[Finding]:
    """Return a finding for each layer: a seed's least favourable layer would lie above 0 by its noise alone."""
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/compression"):
        end = last(rows)
        own = end[end["split"] == "validation"]
        for layer, part in own.groupby("layer"):
            before, after = (by_seed(part[part["stage"] == stage], "rate") for stage in ("before", "after"))
            beside = f"from {shown(before)} to {shown(after)}"
            found.append(
                against_bound(f"{label}, layer {int(str(layer)) + 1}", less(after, before), below=0, beside=beside)
            )
    return found


def _incoherent(evidence: Evidence) -> list[Finding]:
    found: list[Finding] = []
    for label, rows in evidence.labels("audit/coherence"):
        end = last(rows)
        beside = (
            f"{shown(by_seed(end, 'coherence'))}, random directions {shown(by_seed(end, 'null_mean'))}; largest "
            f"{shown(by_seed(end, 'largest'))}; before training {shown(by_seed(first(rows), 'coherence'))}"
        )
        excess = list(by_seed(end.assign(excess=end["coherence"] / end["null_mean"]), "excess").values())
        found.append(over_seeds(label, excess, f"{beside}; range over {len(excess)} seeds"))
    return found


CLAIMS = [
    Claim(
        "§4.1, Figure 4a",
        "The compression term R^var of the tokens mostly decreases from layer to layer.",
        "R^var after the last layer less that after the first, each in its own subspaces, whose scale is learned, "
        "validation images; holds below 0 nats",
        AUDIT,
        _falls_with_depth,
    ),
    Claim(
        "eq. 10, §3.2",
        "Each layer's update is a descent on its own R^var.",
        "change of R^var by a layer's update, each layer by itself; holds below 0 nats",
        AUDIT,
        _each_layer_descends,
    ),
    Claim(
        "Appendix D.4, Figure 11",
        "The learned subspaces are approximately incoherent.",
        "mean |cosine| of directions of different heads over that of random directions; a number, since the paper says "
        "of no bound what is approximate",
        AUDIT,
        _incoherent,
    ),
]
