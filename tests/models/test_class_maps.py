"""What a class token takes of each patch, for every architecture that has one."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kattn_cli.models import Classifier, build_model
from kattn_cli.recipe.model import Tost, Vit
from kattn_cli.recipe.schema import Attention

SIZES: dict[str, Any] = {"image_size": 8, "channels": 1, "classes": 3, "mean": (0.5,), "std": (0.5,)}
VIT = {"name": "vit", "patch_size": 2, "dim": 16, "depth": 3, "heads": 2}


def built(model: dict[str, Any], attention: Any) -> Classifier:
    kind = Tost if model["name"] in ("tost", "xcit") else Vit
    return build_model(kind.model_validate(model), Attention.model_validate(attention), **SIZES).eval()


@pytest.fixture
def images() -> torch.Tensor:
    return torch.rand(2, 1, 8, 8)


def test_a_vision_transformer_has_a_map_for_each_layer_with_a_matrix(images: torch.Tensor) -> None:
    model = built({**VIT, "pool": "token"}, {"name": "softmax", "layers": {1: {"name": "tssa"}}})
    maps = model.class_maps(images)
    assert list(maps) == [0, 2]
    assert {one.shape for one in maps.values()} == {(2, 2, 16)}
    first = model.mechanisms()[0]
    matrix = first.attention_matrix(model.attention_inputs(images)[0])  # type: ignore[operator]
    assert torch.equal(maps[0], matrix[:, :, 0, 1:])


def test_without_a_class_token_there_is_none(images: torch.Tensor) -> None:
    assert built({**VIT, "pool": "avg"}, {"name": "softmax"}).class_maps(images) == {}


def test_class_attention_is_that_of_its_own_layers(images: torch.Tensor) -> None:
    """Two layers, over the patches alone: what CLS takes of itself is left out, so that they sum to less than 1."""
    model = built({"name": "tost", "patch_size": 2, "dim": 16, "depth": 1, "heads": 2}, {"name": "tssa"})
    maps = model.class_maps(images)
    assert list(maps) == [0, 1]
    assert all((one >= 0).all() and (one.sum(-1) < 1).all() for one in maps.values())
    assert model.patch_grid(images) == (4, 4)
    assert built({**VIT, "pool": "avg"}, {"name": "softmax"}).patch_grid(images) == (4, 4)
