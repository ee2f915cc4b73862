"""The ToST paper on what TSSA compresses (§4.1), and on its subspaces (D.4)."""

from __future__ import annotations

from kattn_cli.papers.claim import Claim, Finding, judged
from kattn_cli.papers.evidence import Evidence, by_seed, first, last, less, shown

AUDIT = "kattn audit audit"


def _falls_with_depth(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/compression"):
        out = last(rows)[lambda part: part["stage"] == "after"]
        by_split = {}
        for split, part in out.groupby("split"):
            ends = [by_seed(part[part["layer"] == one], "rate") for one in (part["layer"].max(), part["layer"].min())]
            by_split[split] = less(*ends)
        rates = out[out["split"] == "validation"].groupby("layer")["rate"].mean()
        steps = ", ".join(f"{rate:.3g}" for rate in rates)
        beside = f"by layer {steps}; on training images {shown(by_split['train'])}"
        found.append(judged(label, by_split["validation"], below=0, beside=beside))
    return found


def _each_layer_descends(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/compression"):
        wide = last(rows).pivot_table(index=["run_seed", "split", "layer"], columns="stage", values="rate")
        change = (wide["after"] - wide["before"]).rename("change").reset_index()
        own = change[change["split"] == "validation"]
        layers = ", ".join(f"{one:+.3g}" for one in own.groupby("layer")["change"].mean())
        worst = own.groupby("run_seed")["change"].max()
        values = {int(str(seed)): float(value) for seed, value in worst.items()}
        found.append(judged(label, values, below=0, beside=f"by layer {layers}"))
    return found


def _incoherent(evidence: Evidence) -> list[Finding]:
    found = []
    for label, rows in evidence.labels("audit/coherence"):
        end = last(rows)
        beside = (
            f"{shown(by_seed(end, 'coherence'))}, random directions {shown(by_seed(end, 'null_mean'))}; largest "
            f"{shown(by_seed(end, 'largest'))}; before training {shown(by_seed(first(rows), 'coherence'))}"
        )
        excess = by_seed(end.assign(excess=end["coherence"] / end["null_mean"]), "excess")
        found.append(judged(label, excess, below=1.1, beside=beside))
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
        "change of R^var by a layer's update, the least favourable layer; holds below 0 nats",
        AUDIT,
        _each_layer_descends,
    ),
    Claim(
        "Appendix D.4, Figure 11",
        "The learned subspaces are approximately incoherent.",
        "mean |cosine| of directions of different heads over that of random directions; holds below 1.1",
        AUDIT,
        _incoherent,
    ),
]
