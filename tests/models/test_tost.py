"""The architecture of ToST and XCiT against timm's XCiT, and its size against the papers."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
from reference_vectors import assert_equal
from timm.models.xcit import PositionalEncodingFourier, Xcit
from torch import nn

from kattn_cli.attention.xca import CrossCovarianceAttention
from kattn_cli.models.tost import FourierPositions, TokenStatisticsTransformer, conv_stem

LOCAL_PATCH_INTERACTION = ("local_mp", "norm3", "gamma3")


def xcit(**options: Any) -> TokenStatisticsTransformer:
    return TokenStatisticsTransformer(
        [CrossCovarianceAttention(48, 4, seq_len=16) for _ in range(2)],
        image_size=32,
        channels=3,
        classes=5,
        patch_size=8,
        dim=48,
        heads=4,
        mlp_ratio=4.0,
        class_depth=2,
        layer_scale=0.5,
        drop_path=0.0,
        feed_forward="mlp",
        **options,
    )


def ours_by_theirs(theirs: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    """timm's XCiT in our names: q, k and v of class attention together, LayerScale and the stem called otherwise."""
    ours = {}
    for name, tensor in theirs.items():
        if any(part in name for part in LOCAL_PATCH_INTERACTION) or ".attn.k." in name or ".attn.v." in name:
            continue
        if ".attn.q." in name:
            tensor = torch.cat([theirs[name.replace(".q.", f".{letter}.")] for letter in "qkv"])
            name = name.replace(".q.", ".qkv.")
        if name.endswith("temperature"):
            tensor = tensor.flatten()
        for there, here in [
            ("cls_attn_blocks", "cls_blocks"),
            ("patch_embed.proj", "patch_embed"),
            ("gamma1", "ls1.gamma"),
            ("gamma2", "ls2.gamma"),
        ]:
            name = name.replace(there, here)
        ours[name] = tensor
    return ours


@pytest.mark.parametrize("train", [True, False])
@pytest.mark.parametrize("tokens_norm", [True, False])
def test_equals_timms_xcit_without_local_patch_interaction(train: bool, tokens_norm: bool) -> None:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"img_size": 32, "patch_size": 8, "embed_dim": 48, "depth": 2, "num_heads": 4}
    theirs = Xcit(**sizes, num_classes=5, eta=0.5, tokens_norm=tokens_norm)
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    for block in theirs.blocks:
        nn.init.zeros_(block.get_parameter("gamma3"))
    ours = xcit(tokens_norm=tokens_norm)
    ours.load_state_dict(ours_by_theirs(theirs.state_dict()))
    theirs.pos_embed = ours.pos_embed  # timm's own is in float32, whatever the model
    images = torch.randn(3, 3, 32, 32, dtype=torch.float64)
    assert_equal(ours.double().train(train)(images), theirs.double().train(train)(images))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(("height", "width"), [(1, 1), (4, 4), (7, 5), (14, 14), (37, 64)])
def test_position_code_is_timms_bit_for_bit_up_to_float32(dtype: torch.dtype, height: int, width: int) -> None:
    theirs, ours = PositionalEncodingFourier(dim=24).to(dtype), FourierPositions(dim=24).to(dtype)
    ours.load_state_dict(theirs.state_dict())
    assert torch.equal(ours(2, height, width), theirs(2, height, width))


def test_position_code_by_hand_in_float64() -> None:
    """Row y of H has the angle 2π y / (H + 1e-6), over 10000^(2⌊c/2⌋/32); even channels are sines, odd ones cosines."""
    code = FourierPositions(dim=64).double()
    with torch.no_grad():
        code.token_projection.weight.copy_(torch.eye(64)[..., None, None])
        nn.init.zeros_(code.token_projection.get_parameter("bias"))
    found = code(1, 3, 5)
    for place, angle_of in [
        (0, lambda row, column: 2 * math.pi * (row + 1) / (3 + 1e-6)),
        (32, lambda row, column: 2 * math.pi * (column + 1) / (5 + 1e-6)),
    ]:
        for channel in range(32):
            wave = math.cos if channel % 2 else math.sin
            for row in range(3):
                for column in range(5):
                    expected = wave(angle_of(row, column) / 10_000 ** (2 * (channel // 2) / 32))
                    assert found[0, place + channel, row, column].item() == pytest.approx(expected, rel=0, abs=1e-12)


def test_stem_halves_the_image_and_doubles_the_width_at_each_step() -> None:
    for patch_size, widths in [(2, [16]), (4, [8, 16]), (16, [2, 4, 8, 16])]:
        stem = conv_stem(3, 16, patch_size)
        assert [layer[0].out_channels for layer in stem if isinstance(layer, nn.Sequential)] == widths
        assert stem(torch.rand(2, 3, 32, 32)).shape == (2, 16, 32 // patch_size, 32 // patch_size)


def test_starts_as_xcit_does() -> None:
    torch.manual_seed(0)
    model = xcit()
    for module in model.modules():
        if isinstance(module, nn.Linear):
            assert module.weight.std().item() == pytest.approx(0.02, rel=0.1)
            assert not module.bias.any()
    assert {block.ls1.gamma.unique().item() for block in (*model.blocks, *model.cls_blocks)} == {0.5}
