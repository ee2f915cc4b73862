"""How a fast operator is held against its slow version: outputs and the gradients of all inputs, in float64."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

SIZES = [(2, 2, 1, 4), (2, 3, 7, 5), (2, 3, 63, 5)]
"""``(B, H, N, d)``: one token, an odd number, more than a chunk."""
TOLERANCE = 1e-9


def draw(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64)


def padding(n: int) -> Tensor:
    """``(2, n)``: a sample without padding, and one padded in the middle and at the end."""
    mask = torch.ones(2, n, dtype=torch.bool)
    mask[1, n // 3 : n // 2] = False
    mask[1, 2 * n // 3 + 1 :] = False
    return mask


def no_padding(n: int) -> None:
    """For where a function of :data:`PADDINGS` is asked for."""


def padding_in_front(n: int) -> Tensor:
    return padding(n).flip(-1)


PADDINGS: list[Callable[[int], Tensor | None]] = [no_padding, padding, padding_in_front]


def few_tokens(n: int) -> Tensor:
    """``(2, n)``: one sample with padding here and there, one with a ninth of its tokens, no more than landmarks."""
    return torch.stack([torch.arange(n) % 7 != 1, torch.arange(n) <= n // 9])


def compare(fast: Callable[..., Tensor], slow: Callable[..., Tensor], *inputs: Tensor, mask: Tensor | None) -> None:
    """Both take ``inputs`` and ``mask=``; outputs ``(B, H, N, d)`` at the tokens and all gradients are equal.

    At the padding outputs are finite.
    """
    results = []
    for function in (fast, slow):
        leaves = [tensor.clone().requires_grad_() for tensor in inputs]
        out = function(*leaves, mask=mask)
        if mask is not None:
            out = out * mask[:, None, :, None]  # not a number where infinite
        cotangent = torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent)))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)
