"""Attention mechanisms, one file each.

A mechanism is a module ``Mechanism(dim, heads, *, seq_len, causal=False, <its own named options>)`` whose
``forward(x)`` maps ``(B, N, C)`` to ``(B, N, C)``. Those of this room take the padding too, ``forward(x, mask)``
with ``mask`` ``(B, N)``, True where there is a token. What else a mechanism may offer hangs on it:

- ``auxiliary_loss()``: a scalar that training adds to the task's loss, of the last forward pass; with
  ``layer_reduction``, ``"sum"`` or ``"mean"``: how the terms of several layers join;
- ``attention_matrix(x)``: ``(B, H, N, N)``, where there is such a matrix; ``singular_values(x)`` ``(B, H, count)``,
  where its operator is another;
- ``kernel_inputs(x)``: the queries, keys and values ``(B, H, N, d)`` of a softmax, for its view as kernel PCA;
- ``flops(n)``: operations of a forward pass for one sample of ``n`` tokens;
- ``supports_causal``: a class constant; ``decode(x, state)``: the next tokens of a causal one;
- ``card``: a class constant, the mechanism's line in the table of ``kattn list attention``.
"""

from __future__ import annotations

from torch import nn

from kattn_cli.attention.bigbird import BigBirdAttention
from kattn_cli.attention.class_attention import ClassAttention
from kattn_cli.attention.cosformer import CosformerAttention
from kattn_cli.attention.flowformer import FlowAttention
from kattn_cli.attention.linear import LinearAttention
from kattn_cli.attention.linformer import LinformerAttention
from kattn_cli.attention.longformer import LongformerAttention
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.attention.mssa import SubspaceAttention
from kattn_cli.attention.nystromformer import NystromAttention
from kattn_cli.attention.performer import PerformerAttention
from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.attention.reformer import ReformerAttention
from kattn_cli.attention.rpc import RPCAttention
from kattn_cli.attention.scaled import ScaledAttention
from kattn_cli.attention.soft import SoftAttention
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.attention.symmetric import SymmetricAttention
from kattn_cli.attention.tssa import TokenStatisticsAttention
from kattn_cli.attention.user_file import load_class, names_a_file
from kattn_cli.attention.xca import CrossCovarianceAttention
from kattn_cli.attention.yoso_e import YosoAttention
from kattn_cli.errors import RecipeError, did_you_mean

MECHANISMS: dict[str, type[AttentionMechanism]] = {
    "softmax": SoftmaxAttention,
    "symmetric": SymmetricAttention,
    "scaled": ScaledAttention,
    "rpc": RPCAttention,
    "primal": PrimalAttention,
    "tssa": TokenStatisticsAttention,
    "xca": CrossCovarianceAttention,
    "mssa": SubspaceAttention,
    "class_attention": ClassAttention,
}
"""What the three papers are about."""

BASELINES: dict[str, type[AttentionMechanism]] = {
    "linear": LinearAttention,
    "performer": PerformerAttention,
    "cosformer": CosformerAttention,
    "flowformer": FlowAttention,
    "reformer": ReformerAttention,
    "longformer": LongformerAttention,
    "bigbird": BigBirdAttention,
    "linformer": LinformerAttention,
    "nystromformer": NystromAttention,
    "soft": SoftAttention,
    "yoso_e": YosoAttention,
}
"""What their tables compare with."""

ATTENTIONS = MECHANISMS | BASELINES


def attention_class(name: str) -> type[nn.Module]:
    """The class behind ``name``: one of :data:`ATTENTIONS`, or ``my_file.py:MyAttention``.

    Raises:
        RecipeError: if there is none, with the nearest name.
    """
    if names_a_file(name):
        return load_class(name)
    if name in ATTENTIONS:
        return ATTENTIONS[name]
    choices = ", ".join(ATTENTIONS)
    raise RecipeError(f"expected one of {choices}, or file.py:Class{did_you_mean(name, ATTENTIONS)}")
