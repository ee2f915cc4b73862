"""Operations of whole models, counted by hand."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kattn_cli.attention.options import build_attention
from kattn_cli.costs.model_flops import model_flops, model_flops_of
from kattn_cli.models import build_model
from kattn_cli.recipe.model import TimmModel, Tost, Vit
from kattn_cli.recipe.schema import Attention

N, C, H, CLASSES = 4, 16, 2, 10
IMAGE: dict[str, Any] = {"channels": 1, "classes": CLASSES, "mean": (0.5,), "std": (0.5,)}


def vit(**attention: Any) -> nn.Module:
    model = Vit(patch_size=4, dim=C, depth=2, heads=H, mlp_ratio=2.0)
    return build_model(model, Attention(**attention), image_size=8, **IMAGE)


@pytest.mark.parametrize("name", ["softmax", "tssa"])
def test_a_tiny_vision_transformer(name: str) -> None:
    """Patches of 4 × 4 pixels, two blocks with an MLP of twice the width, the mean over patches, a linear head."""
    rest = 2 * N * 16 * C + 2 * (2 * 2 * N * C * 2 * C) + 2 * C * CLASSES
    layer = build_attention(name, {}, dim=C, heads=H, seq_len=N)
    products = {
        "softmax": 2 * N * C * 4 * C + 4 * N * N * C,
        "tssa": 2 * N * C * 2 * C + 2 * 2 * N * C,  # norms and second moments are products of w² with a vector
    }
    found = model_flops(vit(name=name), torch.zeros(1, 1, 8, 8))
    assert found.formulas == 2
    assert found.flops == rest + 2 * layer.flops(N)  # type: ignore[operator]
    assert found.matrix_products == rest + 2 * products[name]


def test_class_attention_sees_the_class_token_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tost = Tost(patch_size=4, dim=C, depth=1, heads=H, class_depth=1)
    model = build_model(tost, Attention(name="tssa"), image_size=8, **IMAGE)
    without = model_flops(model, torch.zeros(1, 1, 8, 8))
    assert without.formulas == 2
    tokens = {"TokenStatisticsAttention": N, "ClassAttention": N + 1}
    formulas, asked = 0, dict[str, int]()
    for module in model.modules():
        if hasattr(module, "flops"):
            name, formula = type(module).__name__, module.flops
            formulas += formula(tokens[name])  # type: ignore[operator]
            monkeypatch.setattr(module, "flops", partial(asked.setdefault, name))
    changed = model_flops(model, torch.zeros(1, 1, 8, 8))
    assert asked == tokens
    assert changed.flops - (2 * N + 1) == without.flops - formulas


def test_nothing_is_computed_on_the_meta_device() -> None:
    """DeiT-tiny at 224 × 224: 1.26 G multiply-adds; RPC's Table 13 has 1.17 million flops."""

    def build() -> nn.Module:
        image: dict[str, Any] = {"channels": 3, "classes": 1000, "mean": (0.5,) * 3, "std": (0.5,) * 3}
        return build_model(
            TimmModel(name="deit_tiny_patch16_224"), Attention(name="softmax"), image_size=224, **image
        )  # fmt: skip

    found = model_flops_of(build, lambda: torch.empty(1, 3, 224, 224))
    n, c, products = 197, 192, 12 * (2 * 12 * 197 * 192**2 + 4 * 197**2 * 192)
    assert found.matrix_products == products + 2 * (n - 1) * 768 * c + 2 * c * 1000
    assert found.matrix_products / 2 == pytest.approx(1.26e9, rel=0.01)


class Stranger(nn.Module):
    """Without a formula, and it looks at its numbers, which have none on the meta device."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x) if x.abs().sum() >= 0 else x


def test_a_mechanism_of_ones_own() -> None:
    found = model_flops_of(Stranger, lambda: torch.ones(1, 5, 8))
    assert (found.flops, found.matrix_products, found.formulas) == (2 * 5 * 64, 2 * 5 * 64, 0)
