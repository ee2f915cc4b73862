"""Mechanisms by name: alone, and in place of others in a model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from torch import nn

from kattn_cli.attention.options import build_attention, check_options
from kattn_cli.errors import KattnError
from kattn_cli.models.swap import swap_attention
from kattn_cli.models.transfer import Transfer
from kattn_cli.recipe.schema import Attention, LayerKey, Mechanism, spelled_out

Named = str | Mapping[str, Any]
"""A mechanism's name, or its name and options: ``{"name": "rpc", "iterations": 6}``."""
Layered = Mapping[Any, Named]
"""By layer: ``0``, ``-1``, or a slice such as ``"1:"``."""


def attention(name: str, *, dim: int, heads: int, seq_len: int, causal: bool = False, **options: Any) -> nn.Module:
    """Return a mechanism that maps ``(B, N, dim)`` to ``(B, N, dim)``, N up to ``seq_len``.

    Args:
        name: one of ``kattn list attention``, or ``my_file.py:MyAttention``.
        options: the mechanism's own, as in a recipe: ``iterations=6`` for ``rpc``.

    Raises:
        RecipeError: if there is no such mechanism, with the nearest name, or it refuses its sizes.
        KattnError: if it has no such option.

    >>> kattn.Attention("tssa", dim=384, heads=6, seq_len=197)
    """
    if faults := check_options(name, options, ()):
        raise KattnError("; ".join(_words(name, fault.path, fault.message) for fault in faults))
    return build_attention(name, options, dim=dim, heads=heads, seq_len=seq_len, causal=causal)


def swap(model: nn.Module, layers: Named | Layered, *, seq_len: int | None = None) -> Transfer:
    """Put other mechanisms into a model's layers, in place; returns what became of each tensor, which can be printed.

    Weights are kept where the mechanism has a place for them: queries, keys, values, and the projection of the output.

    Args:
        model: any vision transformer of timm, or a model of kattn.
        layers: one mechanism for all layers, or mechanisms by layer.
        seq_len: how many tokens a layer sees, where the model does not say.

    Raises:
        KattnError: if the model has no blocks with an ``attn``, or a layer, mechanism or option does not exist.

    >>> kattn.swap(timm.create_model("vit_tiny_patch16_224"), {0: "rpc", "1:": "symmetric"})
    """
    return swap_attention(model, Attention(name="softmax", layers=_by_layer(layers)), seq_len)


def _by_layer(layers: Named | Layered) -> dict[LayerKey, Mechanism]:
    by_layer = {":": layers} if isinstance(layers, str) or "name" in layers else layers
    return {key: Mechanism.model_validate(spelled_out(one)) for key, one in by_layer.items()}


def _words(name: str, path: tuple[object, ...], message: str) -> str:
    option = ".".join(map(str, path))
    return f"attention {name}: {option}: {message}" if option and option != "name" else f"attention {name}: {message}"
