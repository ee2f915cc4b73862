"""Other mechanisms in a transformer that is built already, in place, with the weights that fit."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from kattn_cli.attention.options import check_options
from kattn_cli.errors import KattnError
from kattn_cli.models.layers import Layers
from kattn_cli.models.transfer import Transfer, match, take_over
from kattn_cli.models.vit import put_attention
from kattn_cli.recipe.schema import Attention, layer_faults, layers_of


def swap_attention(model: nn.Module, attention: Attention, seq_len: int | None = None) -> Transfer:
    """Put other mechanisms into the layers that ``attention.layers`` names, and return what became of each tensor.

    Each takes over the projections of queries, keys, values and outputs that it has a place for, and stands on the
    device, in the type and in the mode (training or evaluation) of what was there. The other layers stay.

    Args:
        model: with ``blocks``, each of which has an ``attn`` with ``num_heads`` or ``heads``: any vision transformer of
            timm, the backbones of kattn.
        attention: ``layers`` alone is read; no layer that it leaves out is changed.
        seq_len: of the tokens that a layer sees; by default those of a vision transformer's images.

    Raises:
        KattnError: if the model has no such blocks, a layer or a mechanism does not exist or refuses its sizes, or
            nothing says how many tokens there are.
    """
    blocks = _blocks(model)
    faults = [*layer_faults(attention, len(blocks))]
    for key, mechanism in attention.layers.items():
        faults += check_options(mechanism.name, mechanism.options, ("attention", "layers", key))
    if faults:
        raise KattnError("; ".join(f"{'.'.join(map(str, fault.path))}: {fault.message}" for fault in faults))
    tokens = seq_len or _tokens(model)
    chosen = {layer: one for key, one in attention.layers.items() for layer in layers_of(key, len(blocks))}
    before = {f"blocks.{layer}.attn.{name}": tensor for layer in chosen for name, tensor in _tensors(blocks[layer])}
    built = {layer: _built(one, blocks[layer].attn, tokens) for layer, one in sorted(chosen.items())}
    holder = nn.ModuleDict({str(layer): nn.ModuleDict({"attn": one}) for layer, one in built.items()})
    new = nn.ModuleDict({"blocks": holder})
    transfer = take_over(new, match(new.state_dict(), before), "the model", before, originals=before)
    for layer, module in built.items():
        put_attention(blocks[layer], module)
    return transfer


def _blocks(model: nn.Module) -> list[Any]:
    """Raises:
    KattnError: if the model has none whose attention can be found.
    """
    backbone: Any = getattr(model, "backbone", model)
    blocks = list(getattr(backbone, "blocks", []))
    if not blocks or not all(isinstance(getattr(block, "attn", None), nn.Module) for block in blocks):
        raise KattnError(f"{type(model).__name__}: has no blocks that each have an attn, as vision transformers do")
    return blocks


def _tokens(model: nn.Module) -> int:
    """Raises:
    KattnError: if the model does not say for how many tokens it was built.
    """
    backbone: Any = getattr(model, "backbone", model)
    patches = getattr(getattr(backbone, "patch_embed", None), "num_patches", None)
    if patches is None:
        raise KattnError(f"{type(model).__name__}: does not say how many tokens its layers see; give seq_len")
    return int(patches) + int(getattr(backbone, "num_prefix_tokens", 0))


def _tensors(block: Any) -> list[tuple[str, torch.Tensor]]:
    return list(block.attn.state_dict().items())


def _built(mechanism: Any, old: Any, tokens: int) -> nn.Module:
    heads = getattr(old, "num_heads", None) or getattr(old, "heads", None)
    first = next(iter(old.parameters()), None)
    if heads is None or first is None:
        raise KattnError(f"{type(old).__name__}: is no attention whose heads and width can be read")
    layers = Layers(1, int(first.shape[-1]), int(heads), tokens)
    return layers.build(mechanism).to(first.device, first.dtype).train(old.training)
