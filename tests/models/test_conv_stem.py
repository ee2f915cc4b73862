"""A convolutional stem in place of a vision transformer's patch embedding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.errors import RecipeError
from kattn_cli.experiment.recipes import load
from kattn_cli.models import build_model
from kattn_cli.models.conv_stem import ConvEmbed
from kattn_cli.models.tost import TokenStatisticsTransformer
from kattn_cli.recipe.model import Vit
from kattn_cli.recipe.schema import Attention

FASHION: dict[str, Any] = {"image_size": 28, "channels": 1, "classes": 10, "mean": [0.3], "std": [0.4]}
OF_A_CONVOLUTION = ("0.weight", "1.weight", "1.bias", "1.running_mean", "1.running_var", "1.num_batches_tracked")


@pytest.mark.parametrize(("size", "patch", "channels"), [(28, 4, 1), (8, 2, 3), (32, 8, 3), (64, 32, 1)])
def test_a_token_for_each_patch_in_the_order_of_rows(size: int, patch: int, channels: int) -> None:
    embed = ConvEmbed(img_size=size, patch_size=patch, in_chans=channels, embed_dim=32).eval()
    side = size // patch
    assert (embed.grid_size, embed.num_patches, embed.patch_size) == ((side, side), side**2, (patch, patch))
    images = torch.rand(2, channels, size, size)
    tokens = embed(images)
    assert tokens.shape == (2, side**2, 32)
    for row, column in ((0, side - 1), (side - 1, 0)):
        there = images.clone()
        there[..., row * patch, column * patch] += 1
        moved = (embed(there) - tokens).abs().amax((0, 2))
        assert moved.argmax() == row * side + column


def test_it_is_the_stem_of_tost() -> None:
    mechanisms = [SoftmaxAttention(32, 2, seq_len=49)]
    sizes: dict[str, Any] = {"patch_size": 4, "dim": 32, "heads": 2, "mlp_ratio": 2.0, "class_depth": 1}
    of_data = {key: FASHION[key] for key in ("image_size", "channels", "classes")}
    tost = TokenStatisticsTransformer(
        mechanisms, **of_data, **sizes, layer_scale=1.0, drop_path=0.0, feed_forward="mlp"
    )
    embed = ConvEmbed(img_size=28, patch_size=4, in_chans=1, embed_dim=32)
    embed.stem.load_state_dict(tost.patch_embed.state_dict())
    seen: list[torch.Tensor] = []
    tost.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    images = torch.rand(3, 1, 28, 28)
    tost.pos_embed.forward = lambda *_: torch.zeros(1, 32, 7, 7)  # type: ignore[method-assign]
    tost.eval()(images)
    torch.testing.assert_close(embed.eval()(images), seen[0], rtol=0, atol=1e-6)


def test_a_model_with_it_and_the_names_of_its_weights() -> None:
    """By which the weights of runs are read again; everything but the stem is called as ever."""
    models = {
        stem: build_model(Vit(stem=stem, patch_size=4, dim=32, depth=2, heads=2), Attention(name="softmax"), **FASHION)
        for stem in ("patch", "conv")
    }
    assert models["conv"](torch.rand(2, 1, 28, 28)).shape == (2, 10)
    patch, conv = (set(models[stem].state_dict()) for stem in ("patch", "conv"))
    assert patch - conv == {"backbone.patch_embed.proj.weight", "backbone.patch_embed.proj.bias"}
    assert conv - patch == {f"backbone.patch_embed.stem.{place}.{one}" for place in (0, 2) for one in OF_A_CONVOLUTION}
    assert models["conv"].state_dict()["backbone.patch_embed.stem.2.0.weight"].shape == (32, 16, 3, 3)
    assert models["conv"].state_dict()["backbone.pos_embed"].shape == (1, 49, 32)


POWER = "model.patch_size must be 2, 4, 8, 16, 32 for stem: conv, and"
FAULTS = {
    "{patch_size: 6}": f"{POWER} 6 is not",
    "{patch_size: 1}": f"{POWER} 1 is not",
    "{patch_size: 32, dim: 24, heads: 2}": "model.dim must be a multiple of 16 for patch_size 32, whose first "
    "convolution has dim / 16 channels, and 24 is not",
    "{causal: true, pool: avg}": "model.stem must be patch for causal: true, since convolutions see later patches",
    "{patch_size: 16}": "",
    "{patch_size: 2, dim: 30, heads: 2, position: learned}": "",
}
"""Of images of 96 × 96."""


@pytest.mark.parametrize("model", FAULTS)
def test_sizes_that_it_can_have(model: str, tmp_path: Path) -> None:
    path = tmp_path / "stem.yaml"
    section = model.replace("{", "{stem: conv, ")
    path.write_text(f"name: x\nattention: softmax\ndata: {{name: digits, image_size: 96}}\nmodel: {section}\n")
    if not FAULTS[model]:
        assert load(path).model.stem == "conv"  # type: ignore[union-attr]
        return
    with pytest.raises(RecipeError) as refused:
        load(path)
    told = [" ".join(line.split()) for line in str(refused.value).splitlines()[1:]]
    assert told == [f"line 4 {FAULTS[model]}"]
