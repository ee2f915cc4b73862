"""What operators are given, checked where it enters them, before any kernel takes a pointer to it.

Shapes that broadcast and any strides are harmless: they are written out where a kernel would not see them. The rest is
refused in one line, which says what was expected and what came. B: batch, N: tokens.
"""

from __future__ import annotations

import torch
from torch import Tensor

from kattn_cli.kernels.precision import exact_dtype


def check_mask(operator: str, mask: Tensor | None, z: Tensor) -> None:
    """Refuse a mask that is not one of the tokens of ``z``, ``(B, ..., N, d)``.

    Raises:
        ValueError: unless it is bool, ``(B or 1, N)`` and where ``z`` is.
    """
    if mask is None:
        return
    samples, tokens = z.shape[0], z.shape[-2]
    fits = mask.ndim == 2 and mask.shape[1] == tokens and (mask.shape[0] == 1 or mask.shape[0] == samples)
    if not fits or mask.dtype != torch.bool or mask.device != z.device:
        expected = f"({samples} or 1, {tokens}) of torch.bool on {z.device}"
        raise ValueError(f"{operator}: mask: expected {expected}, got {_text(mask)}")


def token_mask(operator: str, mask: Tensor | None, z: Tensor) -> Tensor | None:
    """Return the mask of the tokens of ``z``, ``(B, ..., N, d)``, as kernels read it: ``(B, N)``, contiguous.

    Raises:
        ValueError: as :func:`check_mask`.
    """
    check_mask(operator, mask, z)
    return None if mask is None else mask.expand(z.shape[0], -1).contiguous()


def check_axes(operator: str, name: str, z: Tensor, axes: str) -> None:
    """Refuse an input without these axes, as ``"B, H, N, d"``.

    Raises:
        ValueError: if it has more or fewer, or is not of floating-point numbers.
    """
    if z.ndim != axes.count(",") + 1 or not z.is_floating_point():
        raise ValueError(f"{operator}: {name}: expected ({axes}) of floating-point numbers, got {_text(z)}")


def check_alike(operator: str, name: str, z: Tensor | None, first: Tensor) -> None:
    """Refuse an input that is not like the ``first`` one.

    Raises:
        ValueError: if its shape, type or device is another.
    """
    if z is not None and (z.shape != first.shape or z.dtype != first.dtype or z.device != first.device):
        raise ValueError(f"{operator}: {name}: expected {_text(first)}, got {_text(z)}")


def check_shape(operator: str, name: str, z: Tensor, shape: tuple[int, ...], like: Tensor) -> None:
    """Refuse what does not belong to ``like``.

    Raises:
        ValueError: if its shape is another, it is elsewhere, or of a type wider than ``like`` is computed in.
    """
    widest = exact_dtype(like)
    if tuple(z.shape) != shape or z.device != like.device or torch.promote_types(z.dtype, widest) != widest:
        expected = f"{shape} of {widest} or narrower on {like.device}"
        raise ValueError(f"{operator}: {name}: expected {expected}, got {_text(z)}")


def parameter(operator: str, name: str, z: Tensor, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Return a parameter as kernels read it: in this shape, contiguous.

    Raises:
        ValueError: if it does not broadcast to the shape; otherwise as :func:`check_shape`.
    """
    if z.ndim == len(shape) and all(had in (wanted, 1) for had, wanted in zip(z.shape, shape, strict=True)):
        z = z.expand(shape)
    check_shape(operator, name, z, shape, like)
    return z.contiguous()


def _text(z: Tensor) -> str:
    return f"{tuple(z.shape)} of {z.dtype} on {z.device}"
