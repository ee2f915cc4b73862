"""Gradient checkpointing changes memory, and no number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from timm.layers import set_reentrant_ckpt
from torch import Tensor

from kattn_cli.attention import ATTENTIONS
from kattn_cli.models import Classifier, auxiliary_loss, build_model
from kattn_cli.recipe.model import ImageModel, TimmModel, Tost, Vit
from kattn_cli.recipe.schema import Attention

DIGITS: dict[str, Any] = {"image_size": 8, "channels": 1, "classes": 5, "mean": [0.3], "std": [0.4]}
SMALL: dict[str, Any] = {"patch_size": 2, "dim": 16, "depth": 3, "heads": 2, "drop_path": 0.3}
BACKBONES: dict[str, ImageModel] = {
    "vit": Vit(**SMALL),
    "vit with class token": Vit(**SMALL, pool="token"),
    "vit of ISTA": Vit(**SMALL, feed_forward="ista"),
    "tost": Tost(**SMALL),
    "xcit": Tost(name="xcit", **SMALL, feed_forward="ista"),
    "timm's": TimmModel(name="test_vit", drop_path=0.3),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "softmax with dropout": {"name": "softmax", "attn_drop": 0.3},
    "rpc with dropout": {"name": "rpc", "attn_drop": 0.3},
    "primal as reference": {"name": "primal", "s": 4, "convention": "reference"},
    "primal sample by sample": {"name": "primal", "s": 4, "square": "sample", "trace": "projected"},
    "several": {"name": "xca", "layers": {1: {"name": "primal", "s": 4}, -1: "tssa"}},
}
KINDS = {**{name: {"name": name} for name in ATTENTIONS}, **OPTIONS}


@pytest.fixture(autouse=True)
def _reentrant() -> Iterator[None]:
    """timm's setting as it was."""
    yield
    set_reentrant_ckpt(False)


def built(backbone: str, kind: str) -> Classifier:
    torch.manual_seed(0)
    model = build_model(BACKBONES[backbone], Attention.model_validate(KINDS[kind]), **size(backbone))
    return model.double().train()


def size(backbone: str) -> dict[str, Any]:
    return {**DIGITS, "image_size": 32} if backbone == "timm's" else DIGITS


def trained(model: Classifier, image_size: int) -> list[Tensor]:
    """Losses, auxiliary losses and gradients of two steps, and the weights and statistics after them."""
    torch.manual_seed(1)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    numbers: list[Tensor] = []
    for _ in range(2):
        logits = model(torch.rand(3, 1, image_size, image_size, dtype=torch.float64))
        loss, auxiliary = F.cross_entropy(logits, torch.tensor([0, 3, 4])), auxiliary_loss(model)
        optimizer.zero_grad()
        (loss + auxiliary).backward()
        optimizer.step()
        gradients = [parameter.grad.clone() for parameter in model.parameters() if parameter.grad is not None]
        assert len(gradients) == len(list(model.parameters()))
        numbers += [loss.detach(), auxiliary.detach(), *gradients]
    return [*numbers, torch.rand(1), *model.state_dict().values()]


CASES = [("vit", kind) for kind in KINDS] + [(name, kind) for name in BACKBONES if name != "vit" for kind in OPTIONS]


@pytest.mark.parametrize(("backbone", "kind"), CASES)
def test_no_number_changes(backbone: str, kind: str) -> None:
    """Bit for bit, the numbers drawn for dropout and stochastic depth included."""
    plain, checkpointed = built(backbone, kind), built(backbone, kind)
    checkpointed.set_grad_checkpointing(True)
    pixels = size(backbone)["image_size"]
    pairs = list(zip(trained(plain, pixels), trained(checkpointed, pixels), strict=True))
    assert all(torch.equal(*pair) for pair in pairs)


def kept(model: Classifier, image_size: int) -> int:
    """Bytes that the backward pass needs of one image."""
    sizes: list[int] = []

    def pack(tensor: Tensor) -> Tensor:
        sizes.append(tensor.numel() * tensor.element_size())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        (model(torch.rand(1, 1, image_size, image_size, dtype=torch.float64)).sum() + auxiliary_loss(model)).backward()
    return sum(sizes)


@pytest.mark.parametrize("kind", ["softmax", "rpc", "primal as reference", "tssa"])
@pytest.mark.parametrize("backbone", BACKBONES)
def test_memory_falls(backbone: str, kind: str) -> None:
    model, pixels = built(backbone, kind), size(backbone)["image_size"]
    before = kept(model, pixels)
    model.set_grad_checkpointing(True)
    assert kept(model, pixels) < before / 5
    model.set_grad_checkpointing(False)
    assert kept(model, pixels) == before


def test_timms_other_way_is_not_taken() -> None:
    """It would run the blocks without a graph, and lose the gradients of the KSVD term where it says nothing."""
    set_reentrant_ckpt(True)
    test_no_number_changes("vit", "primal as reference")
