"""What the tests of several mechanisms do with them, and demand of each beside the contract."""

from __future__ import annotations

from typing import Any

import torch
from reference_vectors import assert_equal
from torch import Tensor, nn

from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.softmax import SoftmaxAttention


def first_tokens(n: int, *lengths: int) -> Tensor:
    """``(B, n)``: True for the first so many tokens of each sample."""
    return torch.arange(n) < torch.tensor(lengths)[:, None]


def take_over(projection: nn.Linear, *parts: nn.Linear) -> None:
    """Into one ``projection`` the weights of a package's ``parts``: to queries, keys and values, say."""
    with torch.no_grad():
        projection.weight.copy_(torch.cat([part.weight for part in parts]))
        if projection.bias is not None:
            projection.bias.copy_(torch.cat([part.bias for part in parts]))


def let_through(projection: nn.Linear) -> None:
    """Make an output projection the identity, for packages that have none."""
    with torch.no_grad():
        projection.weight.copy_(torch.eye(len(projection.weight)))
        projection.bias.zero_()


def softmax_with_the_weights_of(module: Any, causal: bool = False) -> SoftmaxAttention:
    """Softmax attention of any length; what else ``module`` has is left out."""
    softmax = SoftmaxAttention(module.dim, module.heads, seq_len=1, causal=causal).double()
    state = module.state_dict()
    softmax.load_state_dict({name: state[name] for name in softmax.state_dict()})
    return softmax


def check_attention_matrix(module: Any, x: Tensor, mask: Tensor | None = None) -> Tensor:
    """The output is the attention matrix times the values, heads joined and projected. Returns the matrix."""
    matrix = module.attention_matrix(x, mask)
    projected, count = (module.qkv(x), 3) if hasattr(module, "qkv") else (module.kv(x), 2)
    values = split_projections(projected, module.heads, count)[-1]
    found = module.proj(join_heads(matrix @ values))
    torch.testing.assert_close(found, module(x, mask), rtol=1e-12, atol=1e-12)
    return matrix


def check_padding(module: Any, x: Tensor, mask: Tensor) -> None:
    """Outputs and the attention matrix of each padded sample are those of its tokens by themselves.

    What stands at the padding changes no bit; outputs and gradients are finite, those of samples of padding alone too.
    """
    x = x.clone().requires_grad_()
    out, matrix = module(x, mask), module.attention_matrix(x, mask)
    assert torch.equal(module(torch.where(mask[..., None], x, 1e3), mask)[mask], out[mask])
    for b, there in enumerate(mask):
        if there.any():
            alone = x[b : b + 1, there]
            assert_equal(out[b, there], module(alone)[0])
            assert_equal(matrix[b][:, there][:, :, there], module.attention_matrix(alone)[0])
    assert out.isfinite().all()
    (grad,) = torch.autograd.grad(out.square().sum(), x)
    assert grad.isfinite().all()


def check_causality(module: Any, x: Tensor, mask: Tensor | None = None, tolerance: float = 0.0) -> None:
    """Outputs do not change with the tokens after them, however large those are; those of the tokens changed do."""
    out = module(x, mask)
    for t in (1, 5, len(x[0]) // 2, len(x[0]) - 1):
        changed = module(torch.cat((x[:, :t], 100 * torch.randn_like(x[:, t:])), 1), mask)
        torch.testing.assert_close(changed[:, :t], out[:, :t], rtol=0, atol=tolerance)
        assert not torch.allclose(changed[:, t:], out[:, t:])


def decode(module: Any, x: Tensor, sizes: list[int]) -> tuple[Tensor, list[Any]]:
    """Outputs for ``x`` given in pieces of these sizes, and the states between them."""
    outputs, states = [], [None]
    for piece in x.split(sizes, 1):
        out, state = module.decode(piece, states[-1])
        outputs.append(out)
        states.append(state)
    return torch.cat(outputs, 1), states[1:]
