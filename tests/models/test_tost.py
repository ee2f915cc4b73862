"""The architecture of ToST and XCiT against timm's XCiT, and its size against the papers."""

from __future__ import annotations

import pytest
import torch
from reference_vectors import assert_equal
from timm.models.xcit import Xcit
from torch import nn

from kattn_cli.attention.xca import CrossCovarianceAttention
from kattn_cli.models.tost import TokenStatisticsTransformer, conv_stem

LOCAL_PATCH_INTERACTION = ("local_mp", "norm3", "gamma3")


def xcit() -> TokenStatisticsTransformer:
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
def test_equals_timms_xcit_without_local_patch_interaction(train: bool) -> None:
    torch.manual_seed(0)
    theirs = Xcit(
        img_size=32, patch_size=8, num_classes=5, embed_dim=48, depth=2, num_heads=4, eta=0.5, tokens_norm=True
    )
    for parameter in theirs.parameters():
        nn.init.normal_(parameter, std=0.3)
    for block in theirs.blocks:
        nn.init.zeros_(block.get_parameter("gamma3"))
    ours = xcit()
    ours.load_state_dict(ours_by_theirs(theirs.state_dict()))
    images = torch.randn(3, 3, 32, 32, dtype=torch.float64)
    assert_equal(ours.double().train(train)(images), theirs.double().train(train)(images))


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
