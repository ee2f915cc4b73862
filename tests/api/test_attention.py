"""Mechanisms by name, and in place of others in a model that is there."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
from torch import Tensor, nn

import kattn_cli as kattn

IMAGES = torch.randn(2, 3, 160, 160, generator=torch.Generator().manual_seed(0))


@pytest.fixture
def model() -> Any:
    torch.manual_seed(0)
    return timm.create_model("test_vit", num_classes=5).eval()


def test_a_mechanism_is_built_with_its_options() -> None:
    mechanism: Any = kattn.Attention("rpc", dim=8, heads=2, seq_len=5, iterations=3)
    assert mechanism(torch.randn(1, 5, 8)).shape == (1, 5, 8)
    assert mechanism.pursuit.iterations == 3


@pytest.mark.parametrize(
    ("name", "options", "said"),
    [
        ("tsa", {}, 'did you mean "tssa"?'),
        ("rpc", {"iteration": 3}, 'attention rpc: iteration: unknown key; did you mean "iterations"?'),
        ("rpc", {"iterations": 0}, "attention rpc: iterations"),
    ],
)
def test_a_wrong_mechanism_is_one_line(name: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(kattn.KattnError) as caught:
        kattn.Attention(name, dim=8, heads=2, seq_len=5, **options)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@torch.no_grad()
def test_softmax_for_softmax_changes_no_output(model: Any) -> None:
    before = model(IMAGES)
    transfer = kattn.swap(model, "softmax")
    assert torch.allclose(model(IMAGES), before, atol=1e-6)
    assert not transfer.initialised
    assert not transfer.unused
    assert type(model.blocks[0].attn).__module__.startswith("kattn_cli.")


@torch.no_grad()
def test_layers_get_what_they_are_given_and_weights_that_fit(model: Any) -> None:
    qkv = model.blocks[0].attn.qkv.weight.clone()
    kept = model.blocks[2].attn
    layers: dict[int, Any] = {0: {"name": "rpc", "iterations": 2}, -1: "tssa"}
    transfer = kattn.swap(model, layers)
    names = [type(block.attn).__name__ for block in model.blocks]
    assert (names[0], names[-1]) == ("RPCAttention", "TokenStatisticsAttention")
    assert model.blocks[0].attn.pursuit.iterations == 2
    assert model.blocks[2].attn is kept
    _, keys, values = qkv.chunk(3)
    assert torch.equal(model.blocks[0].attn.kv.weight, torch.cat([keys, values]))
    assert "k, v of attn.qkv in layer 0" in str(transfer)
    assert model(IMAGES).shape == (2, 5)


def test_device_type_and_mode_stay(model: Any) -> None:
    model.double().train()
    kattn.swap(model, {0: "symmetric"})
    (weight, *_) = model.blocks[0].attn.parameters()
    assert weight.dtype == torch.float64
    assert model.blocks[0].attn.training


class Blocks(nn.Module):
    """Blocks of a user's own, which do not say how many tokens they see."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.ModuleDict({"attn": timm.layers.Attention(8, num_heads=2)}) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = x + block.get_submodule("attn")(x)
        return x


def test_blocks_of_a_user_s_own_need_the_number_of_tokens() -> None:
    model = Blocks()
    with pytest.raises(kattn.KattnError, match="Blocks: does not say how many tokens its layers see; give seq_len"):
        kattn.swap(model, "tssa")
    kattn.swap(model, "tssa", seq_len=7)
    assert model(torch.randn(1, 7, 8)).shape == (1, 7, 8)


@pytest.mark.parametrize(
    ("layers", "said"),
    [
        ({6: "rpc"}, "the model has 6 layers: 0 … 5, or -6 … -1"),
        ({0: "rpx"}, 'did you mean "rpc"?'),
        ({0: "rpc", ":": "tssa"}, "names layer 0, which 0 names already"),
        ("primal:", "expected one of"),
    ],
)
def test_a_wrong_layer_changes_nothing(model: Any, layers: Any, said: str) -> None:
    before = [block.attn for block in model.blocks]
    with pytest.raises(kattn.KattnError) as caught:
        kattn.swap(model, layers)
    assert said in str(caught.value)
    assert [block.attn for block in model.blocks] == before


def test_a_model_without_attention_is_named() -> None:
    with pytest.raises(kattn.KattnError, match="ResNet: has no blocks that each have an attn"):
        kattn.swap(timm.create_model("test_resnet"), "rpc")
