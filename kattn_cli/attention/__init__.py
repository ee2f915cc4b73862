"""Attention mechanisms, one file each.

A mechanism is a module ``Mechanism(dim, heads, *, seq_len, causal=False, <its own named options>)`` whose
``forward(x)`` maps ``(B, N, C)`` to ``(B, N, C)``. Those of this room take the padding too, ``forward(x, mask)``
with ``mask`` ``(B, N)``, True where there is a token. What else a mechanism may offer hangs on it:

- ``auxiliary_loss()``: a scalar that training adds to the task's loss, of the last forward pass; with
  ``layer_reduction``, ``"sum"`` or ``"mean"``: how the terms of several layers join;
- ``begin()``: changes the mechanism's weights once its model, which may draw them anew, has been built;
- ``attention_matrix(x)``: ``(B, H, N, N)``, where there is such a matrix; ``singular_values(x)`` ``(B, H, count)``,
  where its operator is another;
- ``kernel_inputs(x)``: the queries, keys and values ``(B, H, N, d)`` of a softmax, for its view as kernel PCA;
- ``flops(n)``: operations of a forward pass for one sample of ``n`` tokens;
- ``supports_causal``: a class constant; ``decode(x, state)``: the next tokens of a causal one.

To add one, write its file and give it a card in :data:`ATTENTIONS`. From the card come its line of ``kattn list
attention``, and its place and colour in tables and figures. This module never imports torch, so that they can read it.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from kattn_cli.errors import RecipeError, did_you_mean

if TYPE_CHECKING:
    from torch import nn

    from kattn_cli.attention.mechanism import AttentionMechanism


@dataclass(frozen=True)
class Card:
    """A mechanism in a line: where it comes from, what it costs, how it is drawn.

    Args:
        place: its file in this room and its class, as ``file:Class``.
        paper: the paper, with its equations.
        cost: the number of operations as N grows, in the field's usual letters.
        colour: of its lines in every figure, as ``#rrggbb``.
        differs: where its authors' program differs from their paper.
        baseline: whether the three papers compare with it, rather than propose or analyse it.
    """

    place: str
    paper: str
    cost: str
    colour: str
    differs: str = ""
    baseline: bool = False

    @property
    def cls(self) -> type[AttentionMechanism]:
        """Return the class, imported when it is asked for."""
        file, _, name = self.place.partition(":")
        found: type[AttentionMechanism] = getattr(import_module(f"{__name__}.{file}"), name)
        return found


ATTENTIONS: dict[str, Card] = {
    "softmax": Card("softmax:SoftmaxAttention", paper="Vaswani et al. 2017, eq. 1", cost="N²", colour="#000000"),
    "symmetric": Card("symmetric:SymmetricAttention", paper="RPC-Attention, §3", cost="N²", colour="#0072B2"),
    "scaled": Card("scaled:ScaledAttention", paper="RPC-Attention, eq. 12", cost="N²", colour="#56B4E9"),
    "rpc": Card(
        "rpc:RPCAttention",
        paper="RPC-Attention, Algorithm 1",
        cost="n·N²",
        differs="the program has τ = λ·μ where the paper has λ/μ, and the full width C in μ where it has d",
        colour="#D55E00",
    ),
    "primal": Card(
        "primal:PrimalAttention",
        paper="Primal-Attention, eq. 6–11",
        cost="N",
        differs="the program's J has Λ squared and means over tokens, is squared after averaging over the batch, "
        "and is averaged over layers",
        colour="#009E73",
    ),
    "tssa": Card(
        "tssa:TokenStatisticsAttention",
        paper="ToST, eq. 10–11, Algorithms 1 and 2",
        cost="N",
        differs="causal: the program adds a position's bias d times, eq. 34 once",
        colour="#CC79A7",
    ),
    "xca": Card("xca:CrossCovarianceAttention", paper="El-Nouby et al. 2021 (XCiT)", cost="N", colour="#E69F00"),
    "mssa": Card("mssa:SubspaceAttention", paper="Yu et al. 2023 (CRATE), eq. 11–12", cost="N²", colour="#8C510A"),
    "class_attention": Card(
        "class_attention:ClassAttention", paper="Touvron et al. 2021 (CaiT)", cost="N", colour="#4D4D4D"
    ),
    "linear": Card(
        "linear:LinearAttention",
        paper="Katharopoulos et al. 2020, eq. 4–12",
        cost="N",
        differs="no normaliser; the features of queries and keys are each divided by N^¼, N with the padding",
        colour="#E31A1C",
        baseline=True,
    ),
    "performer": Card(
        "performer:PerformerAttention",
        paper="Choromanski et al. 2021, eq. 3–7",
        cost="N",
        differs="softmax features, whatever its kernel; scaled by d^−¼ twice; ε in the features; padding stays in the "
        "denominator",
        colour="#6A3D9A",
        baseline=True,
    ),
    "cosformer": Card(
        "cosformer:CosformerAttention",
        paper="Qin et al. 2022 (cosFormer)",
        cost="N",
        differs='the Primal authors ran no cosFormer: their "cos" is linear attention with queries and keys of norm 1: '
        "`linear` with `feature_map: cosine`",
        colour="#B8A200",
        baseline=True,
    ),
    "flowformer": Card(
        "flowformer:FlowAttention", paper="Wu et al. 2022 (Flowformer)", cost="N", colour="#1B9E9E", baseline=True
    ),
    "reformer": Card(
        "reformer:ReformerAttention",
        paper="Kitaev et al. 2020, eq. 4–6, Appendix A",
        cost="N log N",
        differs="scores not divided by √d; chunks seen across buckets and rounds; repeated keys count repeatedly",
        colour="#7DB343",
        baseline=True,
    ),
    "longformer": Card(
        "longformer:LongformerAttention", paper="Beltagy et al. 2020, §3.1", cost="Nw", colour="#F27F7E", baseline=True
    ),
    "bigbird": Card(
        "bigbird:BigBirdAttention", paper="Zaheer et al. 2020, §2 (ITC)", cost="N", colour="#999999", baseline=True
    ),
    "linformer": Card(
        "linformer:LinformerAttention",
        paper="Wang et al. 2020, eq. 7",
        cost="Nk",
        differs="one projection in each head for keys and values both; their models share it among all layers, too",
        colour="#666600",
        baseline=True,
    ),
    "nystromformer": Card(
        "nystromformer:NystromAttention",
        paper="Xiong et al. 2021, eq. 13–17, Algorithm 1",
        cost="Nm",
        differs="padding counts in the landmarks, as zeros; the inverse begins with a norm over the whole batch",
        colour="#7DA7C4",
        baseline=True,
    ),
    "soft": Card(
        "soft:SoftAttention", paper="Lu et al. 2021, Algorithms 1 and 2", cost="Nm", colour="#A98BC0", baseline=True
    ),
    "yoso_e": Card(
        "yoso_e:YosoAttention", paper="Zeng et al. 2021, YOSO-E", cost="N²", colour="#C98A4B", baseline=True
    ),
}
"""By name, in the order of tables and figures: what the three papers are about, then what they compare with."""

MECHANISMS = tuple(name for name, card in ATTENTIONS.items() if not card.baseline)
BASELINES = tuple(name for name, card in ATTENTIONS.items() if card.baseline)


def attention_classes() -> dict[str, type[AttentionMechanism]]:
    """Return the class of every mechanism of this room by its name."""
    return {name: card.cls for name, card in ATTENTIONS.items()}


def attention_class(name: str) -> type[nn.Module]:
    """Return the class behind ``name``: one of :data:`ATTENTIONS`, or ``my_file.py:MyAttention``.

    Raises:
        RecipeError: if there is none, with the nearest name.
    """
    from kattn_cli.attention.user_file import load_class, names_a_file

    if names_a_file(name):
        return load_class(name)
    if name in ATTENTIONS:
        return ATTENTIONS[name].cls
    choices = ", ".join(ATTENTIONS)
    raise RecipeError(f"expected one of {choices}, or file.py:Class{did_you_mean(name, ATTENTIONS)}")
