"""Flow-Attention by hand, with padding, causal and in decoding."""

from __future__ import annotations

import math

import pytest
import torch

from kattn_cli.attention.flowformer import FlowAttention


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


def draw(*shape: int) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64)


def assert_close(found: torch.Tensor, expected: torch.Tensor) -> None:
    torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


each_form = pytest.mark.parametrize("causal", [False, True])


@each_form
def test_equal_flows_average(causal: bool) -> None:
    """Equal queries and equal keys: every conserved flow is 1, so the mean of the values so far, times sigmoid(1)."""
    module, v = FlowAttention(24, 3, seq_len=7, causal=causal).double(), draw(2, 3, 7, 8)
    q, k = (draw(1, 1, 1, 8).expand(2, 3, 7, 8) for _ in range(2))
    mean = v.cumsum(-2) / torch.arange(1, 8)[:, None] if causal else v.mean(-2, keepdim=True).expand_as(v)
    assert_close(module.operate(q, k, v, None), mean / (1 + math.exp(-1)))


@each_form
def test_one_feature_leaves_the_competition(causal: bool) -> None:
    """d = 1, two tokens, φ(q) = (a, b), φ(k) = (c, e): I and Ô by hand."""
    a, b, c, e = 0.2, 0.7, 0.4, 0.9
    q = torch.tensor([a, b], dtype=torch.float64).logit()[None, None, :, None]
    k = torch.tensor([c, e], dtype=torch.float64).logit()[None, None, :, None]
    out = FlowAttention(1, 1, seq_len=2, causal=causal).operate(q, k, draw(1, 1, 2, 1) * 0 + 1, None).flatten()
    sigmoid = lambda z: 1 / (1 + math.exp(-z))  # noqa: E731
    if causal:  # the first token alone: I = O = ac, Î = Ô = 1
        received = (a / (a * c) + b * 2 / (b * (c + e))) * e / 2  # Ô of the second
        arrived = (c / (a * c) + e * 2 / (e * (a + b))) * b / 2  # Î of the second
        share = 2 * math.exp(received) / (math.exp(1) + math.exp(received))
        expected = [sigmoid(1), sigmoid(arrived) * (c + e * share) / (c + e)]
    else:
        received_c, received_e = 2 * c / (c + e), 2 * e / (c + e)  # Ô = φ(k) Σ φ(q)/I
        share = 2 / (1 + math.exp(received_c - received_e))  # of the second source
        mean = (c * (2 - share) + e * share) / (c + e)
        expected = [sigmoid(2 * a / (a + b)) * mean, sigmoid(2 * b / (a + b)) * mean]
    assert_close(out, torch.tensor(expected, dtype=torch.float64))


@each_form
def test_padding_changes_nothing(causal: bool) -> None:
    module, x, lengths = FlowAttention(24, 3, seq_len=9, causal=causal).double(), draw(2, 9, 24), (9, 4)
    mask = torch.arange(9) < torch.tensor(lengths)[:, None]
    out = module(x, mask)
    assert_close(module(torch.where(mask[..., None], x, 100.0), mask)[mask], out[mask])
    for sample, length in enumerate(lengths):
        assert_close(out[sample, :length], module(x[sample : sample + 1, :length])[0])
    empty = module(x.requires_grad_(), torch.zeros_like(mask))
    (grad,) = torch.autograd.grad(empty.sum(), x)
    assert empty.isfinite().all()
    assert grad.isfinite().all()


def test_causal_and_padded_in_front() -> None:
    """Padding before the tokens is not counted either."""
    module, x = FlowAttention(24, 3, seq_len=9, causal=True).double(), draw(1, 9, 24)
    mask = (torch.arange(9) >= 3)[None]
    assert_close(module(x, mask)[:, 3:], module(x[:, 3:]))


@each_form
def test_attention_matrix_makes_the_output(causal: bool) -> None:
    module, x = FlowAttention(24, 3, seq_len=9, causal=causal).double(), draw(2, 9, 24)
    mask = torch.arange(9) < torch.tensor([[9], [4]])
    q, k, v = module.qkv(x).unflatten(-1, (3, 3, 8)).permute(2, 0, 3, 1, 4)
    assert_close(module.attention_matrix(x, mask) @ v, module.operate(q, k, v, mask))


def test_order_of_tokens_does_not_matter() -> None:
    module, x, order = FlowAttention(24, 3, seq_len=9).double(), draw(2, 9, 24), torch.randperm(9)
    assert_close(module(x[:, order]), module(x)[:, order])


def test_causal_and_decoded() -> None:
    """Over more than one chunk of the running sum; the state does not grow."""
    module, x = FlowAttention(24, 3, seq_len=300, causal=True).double(), draw(2, 300, 24)
    out, changed = module(x), x.clone()
    changed[:, 150:] += 1
    torch.testing.assert_close(module(changed)[:, :150], out[:, :150], rtol=0, atol=1e-14)
    assert not torch.allclose(module(changed)[:, 150:], out[:, 150:])
    for chunks in ([1] * 9 + [291], [200, 1, 99], [300]):
        state, parts, sizes = None, [], set()
        for piece in x.split(chunks, 1):
            part, state = module.decode(piece, state)
            parts.append(part)
            sizes.add(sum(each.numel() for each in state.sums) + state.aggregate.sums.numel())
        assert_close(torch.cat(parts, 1), out)
        assert len(sizes) == 1
