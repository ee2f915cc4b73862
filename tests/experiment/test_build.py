"""Models from recipes: what mechanisms change of their weights after the frame around them has drawn all anew."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.experiment.build import build, data_of
from kattn_cli.experiment.recipes import load

FRAMES = {
    "vit": "data: {name: digits}\nmodel: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}",
    "tost": "data: {name: digits}\nmodel: {name: tost, patch_size: 4, dim: 16, depth: 2, heads: 2, class_depth: 1}",
    "encoder": "data: {name: recall}\nmodel: {name: encoder, dim: 16, depth: 2, heads: 2}",
    "decoder": "data: {name: text, path: FOLDER/beer.txt, context: 16}\n"
    "model: {name: decoder, dim: 16, depth: 2, heads: 2}",
}


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("tied", [True, False])
def test_queries_begin_as_keys_in_every_frame(frame: str, tied: bool, tmp_path: Path) -> None:
    """ToST draws all linear maps anew once the mechanisms are its own."""
    (tmp_path / "beer.txt").write_text("99 bottles of beer on the wall. " * 40)
    path = tmp_path / "tied.yaml"
    attention = f"attention: {{name: softmax, tied_start: {str(tied).lower()}}}"
    path.write_text(f"name: tied\n{FRAMES[frame].replace('FOLDER', str(tmp_path))}\n{attention}\n")
    recipe = load(path)
    mechanisms = build(recipe, data_of(recipe)).mechanisms()
    assert len(mechanisms) == 2
    for mechanism in mechanisms:
        assert isinstance(mechanism, SoftmaxAttention)
        q, k, v = mechanism.qkv.weight.split(16)
        assert torch.equal(q, k) == tied
        assert not torch.equal(k, v)
