"""FAN's channel attention against loops over heads and channels, and its size against the paper's count."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from reference_vectors import assert_equal
from torch import Tensor, nn

from kattn_cli.models import Classifier, build_model
from kattn_cli.models.channel_attention import ChannelAttention, ConvolutionalMlp
from kattn_cli.recipe.model import PRESETS, Tost
from kattn_cli.recipe.schema import Attention


def channel_attention() -> ChannelAttention:
    torch.manual_seed(0)
    module = ChannelAttention(12, 3, 20).double()
    for parameter in module.parameters():
        nn.init.normal_(parameter, std=0.5)
    return module


def slow_weights(module: ChannelAttention, x: Tensor) -> Tensor:
    """Token by token: σ(Σ_n softmax(q)_nc · mean over the head of softmax(x)_n) · τ."""
    queries, width = module.q(x), x.shape[-1] // module.heads
    out = torch.zeros(len(x), x.shape[-1], dtype=x.dtype)
    for sample in range(len(x)):
        for channel in range(x.shape[-1]):
            head = channel // width
            score = torch.zeros((), dtype=x.dtype)
            for token in range(x.shape[1]):
                q = queries[sample, token, channel].exp() / queries[sample, :, channel].exp().sum()
                own = range(head * width, (head + 1) * width)
                k = sum(x[sample, token, c].exp() / x[sample, :, c].exp().sum() for c in own) / width
                score = score + q * k
            out[sample, channel] = module.temperature[head, 0] / (1 + (-score).exp())
    return out


def slow_mlp(module: ConvolutionalMlp, x: Tensor) -> Tensor:
    """The convolutions by nine shifted products, and batch norm by mean and variance."""
    b, n, _ = x.shape
    side = math.isqrt(n)
    h = module.fc1(x)

    def shifted(z: Tensor, layer: Any) -> Tensor:
        grid = z.reshape(b, side, side, -1)
        padded = torch.zeros(b, side + 2, side + 2, z.shape[-1], dtype=z.dtype)
        padded[:, 1:-1, 1:-1] = grid
        out = layer.bias.expand_as(grid)
        for dy in range(3):
            for dx in range(3):
                out = out + padded[:, dy : dy + side, dx : dx + side] * layer.weight[:, 0, dy, dx]
        return out.reshape(z.shape)

    layers: list[Any] = list(module.conv)
    first, _, norm, second = layers
    z = nn.functional.gelu(shifted(h, first))
    mean, variance = z.mean((0, 1)), z.var((0, 1), unbiased=False)
    z = norm.weight * (z - mean) / (variance + norm.eps).sqrt() + norm.bias
    return module.fc2(h + module.gamma * shifted(z, second))


def test_equals_loops_over_heads_and_channels() -> None:
    """Outputs, and gradients of inputs and parameters."""
    module = channel_attention()
    x = torch.randn(2, 9, 12, dtype=torch.float64, requires_grad=True)
    direction = torch.randn(2, 9, 12, dtype=torch.float64)
    found = []
    for out in (module(x), module.norm(slow_mlp(module.mlp, x)) * slow_weights(module, x)[:, None]):
        leaves = [x, *module.parameters()]
        found.append([out, *torch.autograd.grad(out, leaves, direction)])
    for fast, slow in zip(*found, strict=True):
        assert_equal(fast, slow)


def test_channels_weigh_nearly_half_a_temperature() -> None:
    """Of N tokens the two softmaxes give about 1 / N, and σ of that is a little more than ½."""
    module = ChannelAttention(12, 3, 20)
    weights = module.weights(torch.randn(2, 100, 12))
    assert 0.5 < weights.min() < weights.max() < 0.51


def test_tokens_must_be_a_square() -> None:
    with pytest.raises(ValueError, match="square grid of tokens, and 12 are none"):
        channel_attention()(torch.randn(1, 12, 12, dtype=torch.float64))


def fan(attention: str, sizes: dict[str, Any]) -> Classifier:
    facts: dict[str, Any] = {"image_size": 224, "channels": 3, "classes": 1000, "mean": [0.5] * 3, "std": [0.5] * 3}
    with torch.device("meta"):
        return build_model(Tost.model_validate(sizes), Attention.model_validate({"name": attention}), **facts)


def count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())


def test_parameters_of_the_paper() -> None:
    """7.3 M: FAN-T-ViT, by hand; symmetric attention has no queries of its own."""
    dim, hidden, heads = 192, 768, 4
    convolutions = 2 * (9 * hidden + hidden) + 2 * hidden + hidden
    channel = dim * (dim + 1) + heads + (dim + 1) * hidden + (hidden + 1) * dim + convolutions + 2 * dim
    block = 4 * dim * (dim + 1) + channel + 6 * dim
    class_block = 4 * dim * (dim + 1) + (dim + 1) * hidden + (hidden + 1) * dim + 6 * dim
    stem = sum(9 * a * b + 2 * b for a, b in [(3, 24), (24, 48), (48, 96), (96, 192)]) + 64 * dim + dim
    by_hand = stem + dim + 12 * block + 2 * class_block + 2 * dim + 1000 * (dim + 1)
    assert count(fan("softmax", PRESETS["fan_tiny"])) == by_hand == 7_319_920
    assert by_hand / 1e6 == pytest.approx(7.3, rel=0.02)
    assert count(fan("symmetric", PRESETS["fan_tiny"])) == by_hand - 12 * dim * (dim + 1) == 6_875_248


def test_batch_norm_sees_a_batch_once_under_checkpointing() -> None:
    """And no number of the training changes."""
    sizes = {"name": "fan", "patch_size": 2, "dim": 12, "depth": 2, "heads": 3, "feed_forward": "channel"}
    facts: dict[str, Any] = {"image_size": 6, "channels": 1, "classes": 5, "mean": [0.5], "std": [0.5]}
    states = []
    for enabled in (False, True):
        torch.manual_seed(0)
        model = build_model(Tost.model_validate(sizes), Attention.model_validate({"name": "softmax"}), **facts)
        model.train().set_grad_checkpointing(enabled)
        model(torch.rand(3, 1, 6, 6)).square().sum().backward()
        gradients = [parameter.grad for parameter in model.parameters()]
        assert all(gradient is not None for gradient in gradients)
        states.append([*gradients, *model.state_dict().values()])
    assert all(torch.equal(*pair) for pair in zip(*states, strict=True))
    tracked = {tensor.item() for name, tensor in model.state_dict().items() if name.endswith("num_batches_tracked")}
    assert tracked == {1}
