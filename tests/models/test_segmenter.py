"""Segmenter: against its equations, patch by patch; what the backbone's mechanisms see; beginning from a classifier."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from torch import Tensor

from kattn_cli.models import build_model, build_segmenter
from kattn_cli.models.initial import initialise_from
from kattn_cli.models.segmentation_model import SegmentationModel
from kattn_cli.recipe.model import Segmenter, Vit
from kattn_cli.recipe.schema import Attention, Mechanism

SIZES = {"patch_size": 4, "dim": 16, "depth": 2, "heads": 2, "mlp_ratio": 2.0}
RPC = Attention(name="symmetric", layers={0: Mechanism.model_validate({"name": "rpc", "iterations": 2})})


def built(attention: Attention = RPC, classes: int = 5, **changes: object) -> SegmentationModel:
    model = Segmenter.model_validate({**SIZES, **changes})
    return build_segmenter(model, attention, image_size=16, channels=1, classes=classes, mean=(0.4,), std=(0.3,)).eval()


def naive(model: SegmentationModel, image: Tensor) -> Tensor:
    """The scores of one image's patches, ``(N, K)``: ẑ_p · ĉ_k for each patch and class (paper, §3.2)."""
    decoder = model.decoder
    tokens = model.backbone.forward_features((image[None] - 0.4) / 0.3)[0, 1:]
    x = torch.cat([decoder.project(tokens), decoder.class_embedding[0]])[None]
    blocks: Any = decoder.blocks
    for block in blocks:
        x = x + block.attn(block.norm1(x))
        x = x + block.mlp(block.norm2(x))
    x = decoder.norm(x)[0]
    rows = []
    for patch in x[: len(tokens)]:
        z = decoder.project_patches.weight @ patch
        row = []
        for embedding in x[len(tokens) :]:
            c = decoder.project_classes.weight @ embedding
            row.append(z @ c / (z.norm() * c.norm()))
        rows.append(torch.stack(row))
    scores = torch.stack(rows)
    centred = scores - scores.mean(1, keepdim=True)
    normed = centred / (centred.square().mean(1, keepdim=True) + 1e-5).sqrt()
    return normed * decoder.mask_norm.weight + decoder.mask_norm.bias


def test_masks_are_products_of_normalised_embeddings() -> None:
    model = built(decoder_depth=2)
    torch.nn.init.normal_(model.decoder.mask_norm.weight)
    torch.nn.init.normal_(model.decoder.mask_norm.bias)
    images = torch.rand(2, 1, 16, 16)
    masks = model.masks(images)
    assert masks.shape == (2, 5, 4, 4)
    for image, mask in zip(images, masks, strict=True):
        torch.testing.assert_close(mask.flatten(1).T, naive(model, image), rtol=1e-4, atol=1e-5)
    enlarged = F.interpolate(masks, size=(16, 16), mode="bilinear")
    assert torch.equal(model(images), enlarged)


def test_a_patch_is_row_by_row_where_it_is_in_the_image() -> None:
    model = built()
    image = torch.rand(1, 1, 16, 16)
    changed = image.clone()
    changed[..., 4:8, 12:] += 0.2
    patches = model.backbone.patch_embed(changed) - model.backbone.patch_embed(image)
    moved = patches.abs().sum(-1)[0].view(4, 4)
    assert moved.nonzero().tolist() == [[1, 3]]
    assert model.masks(image).shape[-2:] == (4, 4)


def test_mechanisms_are_the_backbone_s_alone_and_see_a_class_token() -> None:
    model = built()
    kinds = [type(one).__name__ for one in model.mechanisms()]
    assert len(kinds) == 2
    assert kinds[0] != kinds[1]
    inputs = model.attention_inputs(torch.rand(1, 1, 16, 16))
    assert [tuple(x.shape) for x in inputs] == [(1, 17, 16)] * 2
    plain = built(Attention(name="softmax"))
    ours, theirs = model.decoder.state_dict(), plain.decoder.state_dict()
    assert {key: value.shape for key, value in ours.items()} == {key: value.shape for key, value in theirs.items()}


@pytest.mark.parametrize("checkpointing", [False, True])
def test_every_parameter_learns(checkpointing: bool) -> None:
    model = built().train()
    model.set_grad_checkpointing(checkpointing)
    torch.manual_seed(1)
    (model(torch.rand(2, 1, 16, 16)) * torch.randn(2, 5, 16, 16)).sum().backward()
    without = [name for name, one in model.named_parameters() if one.grad is None or not one.grad.abs().sum()]
    assert without == []


def test_it_begins_from_a_classifier_of_other_images(tmp_path: Path) -> None:
    """The position code and the first convolution are fitted; the head is left out."""
    vit = Vit(**SIZES, pool="token")  # type: ignore[arg-type]
    source = build_model(vit, RPC, image_size=8, channels=3, classes=9, mean=(0.5,) * 3, std=(0.5,) * 3)
    save_file(source.state_dict(), tmp_path / "classifier.safetensors")
    model = built()
    transfer = initialise_from(model, str(tmp_path / "classifier.safetensors"))
    assert sorted(transfer.unused) == ["head.bias", "head.weight"]
    assert not transfer.initialised
    assert sorted(transfer.resized) == ["patch_embed.proj.weight", "pos_embed"]
    ours, theirs = model.backbone.state_dict(), source.backbone.state_dict()
    for key in ("blocks.1.mlp.fc1.weight", "blocks.0.attn.proj.weight", "cls_token"):
        assert torch.equal(ours[key], theirs[key])
