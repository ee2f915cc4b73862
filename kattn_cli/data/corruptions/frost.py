"""Frost. Images ``(B, C, H, W)`` in [0, 1].

Our deviation, the only one of the 15 types that changes what is seen: ImageNet-C adds pieces of photographs of frosted
windows, which are not ours to ship; by default we add :func:`~kattn_cli.data.corruptions.ice.ice_textures`, drawn by
rule, about as bright and as rich in contrast. With the photographs, see :func:`read_textures`, it is ImageNet-C's.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.data.corruptions.ice import ice_textures
from kattn_cli.data.corruptions.parameters import Frost
from kattn_cli.data.corruptions.weather import grey
from kattn_cli.data.reading.encoded import Unreadable, as_uint8, open_image
from kattn_cli.errors import DataError

_ENDINGS = (".png", ".jpg", ".jpeg")


def read_textures(folder: str | Path) -> list[Tensor]:
    """The photographs (PNG, JPEG) in ``folder`` by name, each ``(3, h, w)`` in [0, 1].

    Raises:
        DataError: if there is no such folder, no photograph in it, or one that cannot be read.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise DataError(f"{folder}: there is no such folder of frost photographs")
    paths = sorted(path for path in folder.iterdir() if path.suffix.lower() in _ENDINGS)
    if not paths:
        raise DataError(f"{folder}: there are no frost photographs, which end in {', '.join(_ENDINGS)}")
    return [_read(path) for path in paths]


def _read(path: Path) -> Tensor:
    try:
        return as_uint8(open_image(str(path), 3)).float() / 255
    except Unreadable as error:
        raise DataError(f"{path}: cannot be read: {error}") from None


def draw_frost(images: Tensor, parameters: Frost, generator: torch.Generator) -> Tensor:
    """Which texture, top and left: ``(B, 3)`` of U(0, 1)."""
    return torch.rand(len(images), 3, generator=generator, dtype=torch.float64)


def frost(images: Tensor, parameters: Frost, draws: Tensor, textures: Iterable[Tensor] | None = None) -> Tensor:
    """A share of the image and a share of a texture, cut out at a random place.

    One channel gets the texture's luma, three its colours, any other number its luma in each.

    Args:
        textures: each ``(3, h, w)`` in [0, 1], all equally likely (the published program never takes its sixth and last
            photograph); one smaller than the image is enlarged.
    """
    height, width = images.shape[-2:]
    chosen = ice_textures() if textures is None else textures
    fitted = [fit(texture, parameters.scale, height, width) for texture in chosen]
    ice = torch.stack([_piece(fitted, draw, height, width) for draw in draws.tolist()]).to(images)
    if images.shape[1] != 3:
        ice = grey(ice)
    return parameters.image * images + parameters.frost * ice


def fit(texture: Tensor, scale: float, height: int, width: int) -> Tensor:
    """``texture`` scaled (bilinear), by more than ``scale`` where that is too little to cover ``height × width``."""
    tall, wide = texture.shape[-2:]
    scale = max(scale, height / tall, width / wide)
    size = (max(round(tall * scale), height), max(round(wide * scale), width))
    return F.interpolate(texture[None].float(), size, mode="bilinear")[0] if size != (tall, wide) else texture


def _piece(textures: list[Tensor], draw: list[float], height: int, width: int) -> Tensor:
    texture = textures[int(draw[0] * len(textures))]
    top, left = (
        int(place * max(room - side, 1))
        for place, room, side in zip(draw[1:], texture.shape[-2:], (height, width), strict=True)
    )
    return texture[..., top : top + height, left : left + width]
