"""Attention mechanisms, one file each.

A mechanism is a module ``Mechanism(dim, heads, *, seq_len, causal=False, <its own named options>)`` whose
``forward(x)`` maps ``(B, N, C)`` to ``(B, N, C)``. What else it may offer hangs on it:

- ``auxiliary_loss()``: a scalar that training adds to the task's loss, of the last forward pass; with
  ``layer_reduction``, ``"sum"`` or ``"mean"``: how the terms of several layers join;
- ``attention_matrix(x)``: ``(B, H, N, N)``, where there is such a matrix;
- ``flops(n)``: operations of a forward pass for one sample of ``n`` tokens;
- ``supports_causal``: a class constant.
"""

from __future__ import annotations

from torch import nn

from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.attention.rpc import RPCAttention
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.attention.symmetric import SymmetricAttention
from kattn_cli.attention.tssa import TokenStatisticsAttention
from kattn_cli.attention.user_file import load_class, names_a_file
from kattn_cli.errors import RecipeError, did_you_mean

ATTENTIONS: dict[str, type[nn.Module]] = {
    "softmax": SoftmaxAttention,
    "symmetric": SymmetricAttention,
    "rpc": RPCAttention,
    "primal": PrimalAttention,
    "tssa": TokenStatisticsAttention,
}


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
