"""Frost. Images ``(B, C, H, W)`` in [0, 1].

Our deviation, the only one of the 15 types that changes what is seen: ImageNet-C adds pieces of photographs of frosted
windows, which are not ours to ship; by default we add :func:`ice_textures`, feathers of ice over clouds that are drawn
by rule, the same at every call, about as bright and as rich in contrast. With the photographs, see
:func:`read_textures`, it is ImageNet-C's.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.data.corruptions.corruption import Corruption, uniform
from kattn_cli.data.corruptions.plasma import plasma, plasma_draws
from kattn_cli.data.corruptions.weather import grey
from kattn_cli.data.reading.encoded import Unreadable, as_uint8, open_image
from kattn_cli.errors import DataError


class Frost(NamedTuple):
    """Shares of the image and of the frost that is added, and the factor that scales the frost's sides first."""

    image: float
    frost: float
    scale: float


_SIZE = 512
_SEED = 0
_LAYERS = 20
_FEATHERS_A_LAYER = 120
_ROUGHNESS = 1.3
_CLOUDS = 0.4
_TINTS = (
    ((0.38, 0.56, 0.63), 0.08),
    ((0.79, 0.81, 0.84), 0.09),
    ((0.74, 0.80, 0.85), 0.09),
    ((0.54, 0.60, 0.65), 0.12),
    ((0.44, 0.48, 0.53), 0.17),
)
"""Mean of red, green and blue, and standard deviation: about those of ImageNet-C's five photographs."""


@lru_cache(maxsize=1)
def ice_textures() -> tuple[Tensor, ...]:
    """Return five textures ``(3, 512, 512)`` in [0, 1], on the CPU."""
    # A seed of its own: the textures are the same in every run, as photographs would be.
    generator = torch.Generator().manual_seed(_SEED)
    return tuple(_texture(tint, contrast, generator) for tint, contrast in _TINTS)


def _texture(tint: tuple[float, ...], contrast: float, generator: torch.Generator) -> Tensor:
    clouds = plasma(plasma_draws(1, _SIZE, generator), _ROUGHNESS)[0]
    height = _standard(_crystals(generator)) + _CLOUDS * _standard(clouds.float())
    return (torch.tensor(tint).view(3, 1, 1) + contrast * _standard(height)).clamp(0, 1)


def _crystals(generator: torch.Generator) -> Tensor:
    """Return the brightest of layers of feathers, each layer of one shape at random places and brightness."""
    brightest = torch.zeros(_SIZE, _SIZE)
    for _ in range(_LAYERS):
        angle, length, spacing, breadth = uniform((4,), 0, 1, generator).tolist()
        shape = _feather(2 * math.pi * angle, 30 + 90 * length, 4 + 5 * spacing, 0.06 + 0.14 * breadth)
        places = torch.zeros(_SIZE**2)
        chosen = torch.randint(_SIZE**2, (_FEATHERS_A_LAYER,), generator=generator)
        places[chosen] = uniform((_FEATHERS_A_LAYER,), 0.3, 1, generator).float()
        # One convolution puts the shape at every place.
        spectrum = torch.fft.rfft2(places.view(_SIZE, _SIZE)) * torch.fft.rfft2(shape)
        brightest = torch.maximum(brightest, torch.fft.irfft2(spectrum, s=(_SIZE, _SIZE)))
    return brightest


def _feather(angle: float, length: float, spacing: float, breadth: float) -> Tensor:
    """Return a stem of ``length`` pixels from the torus's origin, with barbs every ``spacing``, narrowing to a tip."""
    offset = torch.fft.fftfreq(_SIZE, 1 / _SIZE)
    along = offset * math.cos(angle) + offset[:, None] * math.sin(angle)
    across = (offset[:, None] * math.cos(angle) - offset * math.sin(angle)).abs()
    vane = (along > 0) & (across < breadth * (length - along))
    barbs = 0.5 + 0.5 * torch.cos(2 * math.pi * (along - across) / spacing)
    stem = torch.exp(-((across / 1.2) ** 2))
    return vane * (1 - along / length).clamp(min=0).sqrt() * torch.maximum(stem, 0.7 * barbs)


def _standard(values: Tensor) -> Tensor:
    return (values - values.mean()) / values.std()


_ENDINGS = (".png", ".jpg", ".jpeg")


def read_textures(folder: str | Path) -> list[Tensor]:
    """Return the photographs (PNG, JPEG) in ``folder`` by name, each ``(3, h, w)`` in [0, 1].

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
    """Draw texture, top and left: ``(B, 3)`` of U(0, 1)."""
    return torch.rand(len(images), 3, generator=generator, dtype=torch.float64)


def frost(images: Tensor, parameters: Frost, draws: Tensor, textures: Iterable[Tensor] | None = None) -> Tensor:
    """Add a share of a texture, cut out at a random place, to a share of the image.

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
    """Scale ``texture`` (bilinear), by more than ``scale`` where that is too little to cover ``height × width``."""
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


FROST = Corruption(
    description="ice on the lens",
    position=8,
    apply=frost,
    draw=draw_frost,
    imagenet_c=(Frost(1, 0.4, 1), Frost(0.8, 0.6, 1), Frost(0.7, 0.7, 1), Frost(0.65, 0.7, 1), Frost(0.6, 0.75, 1)),
    cifar_c=(
        Frost(1, 0.2, 0.2),
        Frost(1, 0.3, 0.2),
        Frost(0.9, 0.4, 0.2),
        Frost(0.85, 0.4, 0.2),
        Frost(0.75, 0.45, 0.2),
    ),
    alexnet_error=82.6572,
    takes_textures=True,
)
