"""timm's vision transformer with any mechanism for each block's attention."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Literal

import timm
import torch
from timm.layers import PatchEmbed, build_sincos2d_pos_embed
from timm.models.vision_transformer import VisionTransformer
from torch import nn

from kattn_cli.models.blocks import Block, FeedForward
from kattn_cli.models.conv_stem import ConvEmbed


def build_vit(
    *,
    image_size: int,
    channels: int,
    classes: int,
    patch_size: int,
    dim: int,
    depth: int,
    heads: int,
    mlp_ratio: float,
    pool: Literal["token", "avg"],
    position: Literal["learned", "sincos"],
    drop_path: float,
    feed_forward: FeedForward,
    stem: Literal["patch", "conv"] = "patch",
) -> VisionTransformer:
    """Return a vision transformer of the given sizes.

    ``stem``: what makes tokens of an image, one linear map of a patch, or convolutions
    (:class:`~kattn_cli.models.conv_stem.ConvEmbed`).

    ``position: sincos`` starts the learned position code at the two-dimensional sine-cosine code instead of
    at small noise, which a data set of a thousand images cannot make up for. ``feed_forward: ista`` is CRATE's
    (with timm's patch embedding and norms, where CRATE's program has its own).
    """
    vit = VisionTransformer(
        img_size=image_size,
        patch_size=patch_size,
        in_chans=channels,
        num_classes=classes,
        embed_dim=dim,
        depth=depth,
        num_heads=heads,
        mlp_ratio=mlp_ratio,
        global_pool=pool,
        class_token=pool == "token",
        drop_path_rate=drop_path,
        embed_layer=ConvEmbed if stem == "conv" else PatchEmbed,
    )
    if position == "sincos" and vit.pos_embed is not None:
        code = build_sincos2d_pos_embed(list(vit.patch_embed.grid_size), dim=dim)
        with torch.no_grad():
            vit.pos_embed[:, vit.num_prefix_tokens :] = code
    if feed_forward == "ista":
        rates = torch.linspace(0, drop_path, depth, device="cpu").tolist()
        attentions = [block.get_submodule("attn") for block in vit.blocks]
        blocks = zip(attentions, rates, strict=True)
        vit.blocks = nn.Sequential(*(Block(dim, attn, feed_forward="ista", drop_path=rate) for attn, rate in blocks))
    return vit


def build_timm(name: str, **sizes: Any) -> VisionTransformer:
    """Return timm's model ``name``, without weights; ``sizes`` are timm's own arguments.

    Raises:
        ValueError: if the model is not a vision transformer whose blocks have an ``attn``.
    """
    model = timm.create_model(name, pretrained=False, **sizes)
    if not isinstance(model, VisionTransformer):
        raise ValueError(f"{name} is a {type(model).__name__}, not a vision transformer")
    return model


def timm_names() -> list[str]:
    """Return the names of timm's models that :func:`build_timm` can build."""
    return sorted(timm.list_models(module="vision_transformer") + timm.list_models(module="deit"))


def sequence_length(vit: VisionTransformer) -> int:
    """Return the tokens that each block sees: patches, class token and registers."""
    return int(vit.patch_embed.num_patches + vit.num_prefix_tokens)


def heads_of(vit: VisionTransformer) -> int:
    """Return the number of heads of the attention that the backbone came with."""
    attention: Any = vit.blocks[0].get_submodule("attn")
    return int(attention.num_heads)


def replace_attention(vit: VisionTransformer, mechanisms: Iterable[nn.Module]) -> None:
    """Put one mechanism into each block, in order.

    Parameters keep timm's own names (``blocks.0.attn.qkv.weight``), before and after.
    """
    for block, mechanism in zip(vit.blocks, mechanisms, strict=True):
        put_attention(block, mechanism)


def put_attention(block: nn.Module, mechanism: nn.Module) -> None:
    """Put a mechanism into a block.

    timm calls ``attn(x, attn_mask=…, is_causal=…)``; mechanisms take ``x`` alone, so a hook drops the two.
    """
    mechanism.register_forward_pre_hook(_without_masks, with_kwargs=True)
    block.attn = mechanism


def _without_masks(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    if kwargs.get("attn_mask") is not None or kwargs.get("is_causal"):
        raise NotImplementedError(f"{type(module).__name__} takes no mask")
    return args, {}
