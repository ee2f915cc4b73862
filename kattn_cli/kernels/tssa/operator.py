"""TSSA as the operator ``kattn::tssa``: its own forward and backward kernels, in Triton on a GPU, in C on a CPU.

B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from kattn_cli.kernels.choice import kernel_for, version
from kattn_cli.kernels.entry import check_axes, parameter, token_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact_dtype
from kattn_cli.kernels.tssa.equations import tssa_naive, tssa_plain

Saved = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def tssa(w: Tensor, eta: Tensor, normalize: bool = True, mask: Tensor | None = None) -> Tensor:
    """Return ``−(w · Π · D)`` (eq. 10–11) for ``w`` ``(B, H, N, d)``, ``eta`` ``(H,)``, ``mask`` ``(B, N)`` or None.

    Raises:
        ValueError: if one of them is not that; ``eta`` and ``mask`` may be broadcast.
    """
    check_axes("TSSA", "w", w, "B, H, N, d")
    eta, mask = parameter("TSSA", "eta", eta, (w.shape[1],), w), token_mask("TSSA", mask, w)
    if version() == "slow":
        return tssa_naive(w, eta, normalize, mask)
    if not kernel_for(w, w.shape[1] * w.shape[3]):
        return tssa_plain(w, eta, normalize, mask)
    # The kernels read all heads of a token at once, for the softmax over heads; split projections lie so already.
    tokens_first = without_padding(w, mask).transpose(1, 2).contiguous()
    return tssa_operator(tokens_first, eta, mask, normalize)[0].transpose(1, 2)


@torch.library.custom_op("kattn::tssa", mutates_args=())
def tssa_operator(w: Tensor, eta: Tensor, mask: Tensor | None, normalize: bool) -> Saved:
    """Return the output for ``w`` ``(B, N, H, d)``, contiguous and 0 at the padding, and what the gradient needs.

    That is: energies and Π ``(B, N, H)``; 1 / ‖w‖² of features over tokens and D ``(B, H, d)``; Σ Π ``(B, H)``.
    """
    w, eta, mask = _as_kernels_read(w, eta, mask)
    if w.is_cuda:
        from kattn_cli.kernels.tssa import triton as gpu

        return gpu.forward(w, eta, mask, normalize)
    from kattn_cli.kernels.tssa import c as cpu

    return cpu.forward(w, eta, mask, normalize)


def _as_kernels_read(w: Tensor, eta: Tensor, mask: Tensor | None) -> tuple[Tensor, Tensor, Tensor | None]:
    """Return the inputs contiguous and in full: graphs, and ``torch.ops``, reach the operator past :func:`tssa`."""
    check_axes("kattn::tssa", "w", w, "B, N, H, d")
    eta = parameter("kattn::tssa", "eta", eta, (w.shape[2],), w)
    return w.contiguous(), eta, token_mask("kattn::tssa", mask, w.flatten(2))


@tssa_operator.register_fake
def _(w: Tensor, eta: Tensor, mask: Tensor | None, normalize: bool) -> Saved:
    samples, tokens, heads, width = w.shape
    like = w.new_empty(0, dtype=exact_dtype(w))
    of_tokens = (like.new_empty(samples, tokens, heads) for _ in range(2))
    of_features = (like.new_empty(samples, heads, width) for _ in range(2))
    return (torch.empty_like(w), *of_tokens, *of_features, like.new_empty(samples, heads))  # type: ignore[return-value]


@torch.library.custom_op("kattn::tssa_backward", mutates_args=())
def tssa_backward(
    grad: Tensor,
    w: Tensor,
    eta: Tensor,
    mask: Tensor | None,
    energy: Tensor,
    membership: Tensor,
    inverse_norms: Tensor,
    shrinkage: Tensor,
    mass: Tensor,
    normalize: bool,
) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``w`` and ``eta`` for that of the output, ``(B, N, H, d)``."""
    w, eta, mask = _as_kernels_read(w, eta, mask)
    saved = (w, eta, mask, energy, membership, inverse_norms, shrinkage, mass, normalize)
    if w.is_cuda:
        from kattn_cli.kernels.tssa import triton as gpu

        return gpu.backward(grad.contiguous(), *saved)
    from kattn_cli.kernels.tssa import c as cpu

    return cpu.backward(grad, *saved)


@tssa_backward.register_fake
def _(grad: Tensor, w: Tensor, eta: Tensor, *saved: Any) -> tuple[Tensor, Tensor]:
    return torch.empty_like(w), torch.empty_like(eta)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Saved) -> None:
    w, eta, mask, ctx.normalize = inputs
    ctx.save_for_backward(w, eta, mask, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    # An output that nobody differentiates then comes as None, not as zeros of its size.
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Tensor | None, Tensor | None, None, None]:
    if grad is None:
        return None, None, None, None
    return *tssa_backward(grad, *ctx.saved_tensors, ctx.normalize), None, None


tssa_operator.register_autograd(_differentiate, setup_context=_keep)


@register_flop_formula(torch.ops.kattn.tssa)
def _flops(w_shape: torch.Size, *_: Any, **__: Any) -> int:
    """Return 12 operations an entry and, for the softmax over heads, 5 a token and head."""
    return 12 * w_shape.numel() + 5 * w_shape[:3].numel()


@register_flop_formula(torch.ops.kattn.tssa_backward)
def _backward_flops(grad_shape: torch.Size, *_: Any, **__: Any) -> int:
    """Return 20 operations an entry, and 9 a token and head."""
    return 20 * grad_shape.numel() + 9 * grad_shape[:3].numel()
