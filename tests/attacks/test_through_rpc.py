"""What attacks climb on an RPC model is its gradient, through all iterations of the pursuit."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kattn_cli.attacks.ball import loss_gradient
from kattn_cli.models import Classifier, build_model
from kattn_cli.recipe.model import Vit
from kattn_cli.recipe.schema import Attention


def model(iterations: int) -> Classifier:
    torch.manual_seed(0)
    attention = Attention.model_validate({"name": "rpc", "iterations": iterations, "lambda": 0.2})
    sizes = Vit(name="vit", patch_size=4, dim=16, depth=1, heads=2)
    built = build_model(sizes, attention, image_size=8, channels=1, classes=5, mean=[0.4], std=[0.3])
    for parameter in built.parameters():
        torch.nn.init.normal_(parameter, std=0.3)
    return built.double().eval().requires_grad_(False)


def loss(classifier: Classifier, images: Tensor, labels: Tensor) -> Tensor:
    return torch.nn.functional.cross_entropy(classifier(images), labels, reduction="sum")


@pytest.mark.parametrize("iterations", [1, 4, 6])
def test_equals_the_difference_quotient(iterations: int) -> None:
    attacked, labels = model(iterations), torch.tensor([1, 4])
    images = torch.rand(2, 1, 8, 8, dtype=torch.float64)
    along = torch.randn_like(images)
    h = 1e-6
    quotient = (loss(attacked, images + h * along, labels) - loss(attacked, images - h * along, labels)) / (2 * h)
    found = (loss_gradient(attacked, images, labels) * along).sum()
    assert found.item() == pytest.approx(quotient.item(), rel=1e-5)
    assert abs(found.item()) > 1e-3
