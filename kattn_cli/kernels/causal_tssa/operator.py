"""Causal TSSA as the operator ``kattn::causal_tssa``: a chunked scan in Triton on a GPU, in C on a CPU.

B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.utils.flop_counter import register_flop_formula

from kattn_cli.kernels.causal_tssa.equations import (
    CHUNK,
    Convention,
    bias_repeats,
    causal_tssa_naive,
    causal_tssa_plain,
)
from kattn_cli.kernels.choice import kernel_for, version
from kattn_cli.kernels.entry import check_axes, check_shape, parameter, token_mask
from kattn_cli.kernels.masks import without_padding
from kattn_cli.kernels.precision import exact_dtype

Saved = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]


def causal_tssa(
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    normalize: bool = True,
    convention: Convention = "paper",
    mask: Tensor | None = None,
) -> Tensor:
    """Return Algorithm 2 for ``w`` ``(B, H, N, d)``, ``eta`` ``(H,)``, each token's ``bias`` ``(B or 1, H, N, 1)``.

    Raises:
        ValueError: if one of them is not that; ``eta``, ``bias`` and ``mask`` may be broadcast.
    """
    check_axes("causal TSSA", "w", w, "B, H, N, d")
    samples, heads, tokens, width = w.shape
    eta, mask = parameter("causal TSSA", "eta", eta, (heads,), w), token_mask("causal TSSA", mask, w)
    bias = parameter("causal TSSA", "bias", bias, (1 if bias.shape[0] == 1 else samples, heads, tokens, 1), w)
    if version() == "slow":
        return causal_tssa_naive(w, eta, bias, normalize, convention, mask)
    if not kernel_for(w, heads * width):
        return causal_tssa_plain(w, eta, bias, normalize, convention, mask)[0]
    # The kernels read all heads of a token at once, for the softmax over heads; split projections lie so already.
    tokens_first = without_padding(w, mask).transpose(1, 2).contiguous()
    repeats = bias_repeats(convention, width)
    return causal_tssa_operator(tokens_first, eta, bias[..., 0], mask, normalize, repeats)[0].transpose(1, 2)


@torch.library.custom_op("kattn::causal_tssa", mutates_args=())
def causal_tssa_operator(
    w: Tensor, eta: Tensor, bias: Tensor, mask: Tensor | None, normalize: bool, repeats: int
) -> Saved:
    """Return the output for ``w`` ``(B, N, H, d)``, contiguous and 0 at the padding, and what the gradient needs.

    That is: energies, Π and Σ Π ``(B, N, H)``; Σ w² and Σ Π w² before every chunk, ``(B, ⌈N / CHUNK⌉, H, d)``.
    ``bias``: ``(B or 1, H, N)``.
    """
    w, eta, bias, mask = _as_kernels_read(w, eta, bias, mask)
    if w.is_cuda:
        from kattn_cli.kernels.causal_tssa import triton as gpu

        return gpu.forward(w, eta, bias, mask, normalize, repeats)
    from kattn_cli.kernels.causal_tssa import c as cpu

    return cpu.forward(w, eta, bias, mask, normalize, repeats)


def _as_kernels_read(
    w: Tensor, eta: Tensor, bias: Tensor, mask: Tensor | None
) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
    """Return the inputs in full: graphs, and ``torch.ops``, reach the operator past :func:`causal_tssa`."""
    check_axes("kattn::causal_tssa", "w", w, "B, N, H, d")
    samples, tokens, heads, _ = w.shape
    eta = parameter("kattn::causal_tssa", "eta", eta, (heads,), w)
    check_shape("kattn::causal_tssa", "bias", bias, (1 if bias.shape[0] == 1 else samples, heads, tokens), w)
    return w.contiguous(), eta, bias, token_mask("kattn::causal_tssa", mask, w.flatten(2))


@causal_tssa_operator.register_fake
def _(w: Tensor, eta: Tensor, bias: Tensor, mask: Tensor | None, normalize: bool, repeats: int) -> Saved:
    samples, tokens, heads, width = w.shape
    like = w.new_empty(0, dtype=exact_dtype(w))
    of_tokens = (like.new_empty(samples, tokens, heads) for _ in range(3))
    states = (like.new_empty(samples, (tokens + CHUNK - 1) // CHUNK, heads, width) for _ in range(2))
    return (torch.empty_like(w), *of_tokens, *states)  # type: ignore[return-value]


@torch.library.custom_op("kattn::causal_tssa_backward", mutates_args=())
def causal_tssa_backward(
    grad: Tensor,
    w: Tensor,
    eta: Tensor,
    bias: Tensor,
    mask: Tensor | None,
    normalize: bool,
    repeats: int,
    energy: Tensor,
    membership: Tensor,
    mass: Tensor,
    energy_states: Tensor,
    moment_states: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """Return the gradients of ``w``, ``eta`` and ``bias`` for that of the output, ``(B, N, H, d)``."""
    inputs = (*_as_kernels_read(w, eta, bias, mask), normalize, repeats)
    saved = (energy, membership, mass, energy_states, moment_states)
    if w.is_cuda:
        from kattn_cli.kernels.causal_tssa import triton as gpu

        return gpu.backward(grad.contiguous(), *inputs, *saved)
    from kattn_cli.kernels.causal_tssa import c as cpu

    return cpu.backward(grad, *inputs, *saved)


@causal_tssa_backward.register_fake
def _(grad: Tensor, w: Tensor, eta: Tensor, bias: Tensor, *saved: Any) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(w), torch.empty_like(eta), torch.empty_like(bias)


def _keep(ctx: Any, inputs: tuple[Any, ...], output: Saved) -> None:
    *tensors, ctx.normalize, ctx.repeats = inputs
    ctx.save_for_backward(*tensors, *output[1:])
    ctx.mark_non_differentiable(*output[1:])
    # An output that nobody differentiates then comes as None, not as zeros of its size.
    ctx.set_materialize_grads(False)


def _differentiate(ctx: Any, grad: Tensor | None, *_: Any) -> tuple[Any, ...]:
    if grad is None:
        return (None,) * 6
    w, eta, bias, mask, *saved = ctx.saved_tensors
    grads = causal_tssa_backward(grad, w, eta, bias, mask, ctx.normalize, ctx.repeats, *saved)
    return *grads, None, None, None


causal_tssa_operator.register_autograd(_differentiate, setup_context=_keep)


@register_flop_formula(torch.ops.kattn.causal_tssa)
def _flops(w_shape: torch.Size, *_: Any, **__: Any) -> int:
    """Return 14 operations an entry and, for the softmax over heads, 5 a token and head."""
    return 14 * w_shape.numel() + 5 * w_shape[:3].numel()


@register_flop_formula(torch.ops.kattn.causal_tssa_backward)
def _backward_flops(grad_shape: torch.Size, *_: Any, **__: Any) -> int:
    """Return 53 operations an entry, 12 of which make the running sums again, and 12 a token and head."""
    return 53 * grad_shape.numel() + 12 * grad_shape[:3].numel()
