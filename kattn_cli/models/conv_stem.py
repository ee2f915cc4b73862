"""The convolutional stem of XCiT, for its own architecture and as the patch embedding of a vision transformer.

Sources: "XCiT: Cross-Covariance Image Transformers"; Xiao et al. 2021, "Early Convolutions Help Transformers See
Better".
"""

from __future__ import annotations

from itertools import pairwise

from timm.models.xcit import conv3x3
from torch import Tensor, nn


class ConvEmbed(nn.Module):
    """A :func:`conv_stem`'s ``N = (img_size / patch_size)²`` tokens: ``(B, channels, h, w)`` to ``(B, N, dim)``.

    It has the attributes and the arguments that timm's vision transformer asks of a patch embedding.

    Args:
        patch_size: a power of two.
    """

    def __init__(self, *, img_size: int, patch_size: int, in_chans: int, embed_dim: int, **_: object) -> None:
        super().__init__()
        side = img_size // patch_size
        self.grid_size, self.num_patches, self.patch_size = (side, side), side * side, (patch_size, patch_size)
        self.stem = conv_stem(in_chans, embed_dim, patch_size)

    def forward(self, images: Tensor) -> Tensor:
        return self.stem(images).flatten(2).mT


def conv_stem(channels: int, dim: int, patch_size: int) -> nn.Sequential:
    """Return ``(B, channels, h, w)`` to ``(B, dim, h / patch_size, w / patch_size)``: 3 × 3 convolutions of stride 2.

    Each doubles the width, up to ``dim``, and has batch norm; GELU between them.
    """
    steps = patch_size.bit_length() - 1
    widths = [channels, *(dim >> step for step in reversed(range(steps)))]
    layers: list[nn.Module] = []
    for inputs, outputs in pairwise(widths):
        layers += [conv3x3(inputs, outputs, 2), nn.GELU()]
    return nn.Sequential(*layers[:-1])
