"""Pretrained weights in models of any mechanism."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from safetensors.torch import save_file
from torch import Tensor

from kattn_cli.errors import CheckpointError
from kattn_cli.models import Classifier, build_model
from kattn_cli.models.pretrained import TIMM, load_pretrained
from kattn_cli.models.transfer import Transfer
from kattn_cli.recipe.model import TimmModel
from kattn_cli.recipe.schema import Attention

NAME = "test_vit"  # timm's own for tests: 6 layers of width 64
SIZE: dict[str, Any] = {"image_size": 64, "channels": 3, "classes": 7, "mean": [0.0] * 3, "std": [1.0] * 3}
MIXED = {"name": "symmetric", "layers": {0: {"name": "rpc", "asymmetric": "iterate"}, 2: "primal", -1: "tssa"}}


def source(img_size: int = 64, in_chans: int = 3, num_classes: int = 7) -> Any:
    torch.manual_seed(1)
    return timm.create_model(NAME, img_size=img_size, in_chans=in_chans, num_classes=num_classes).eval()


def saved(state: object, path: Path) -> str:
    torch.save(state, path)
    return str(path)


def begun(attention: object, weights: str, **sizes: Any) -> tuple[Classifier, Transfer, dict[str, Tensor]]:
    """A model with ``attention`` begun from ``weights``, what became of its tensors, and these as they were before."""
    torch.manual_seed(0)
    chosen = Attention.model_validate(attention if isinstance(attention, dict) else {"name": attention})
    model = build_model(TimmModel(name=NAME), chosen, **{**SIZE, **sizes}).eval()
    before = {name: tensor.clone() for name, tensor in model.backbone.state_dict().items()}
    return model, load_pretrained(model, NAME, weights), before


@pytest.mark.parametrize("file", ["w.safetensors", "w.pt", "training.pth"])
def test_softmax_takes_all(file: str, tmp_path: Path) -> None:
    theirs, path = source(), tmp_path / file
    state = theirs.state_dict()
    if path.suffix == ".safetensors":
        save_file(state, path)
    else:
        saved({"model": state, "epoch": 3} if file == "training.pth" else state, path)
    model, transfer, _ = begun("softmax", str(path))
    assert transfer == Transfer(str(path), list(theirs.state_dict()), [], {}, {}, [])
    assert str(transfer) == f"weights from {path}: 80 tensors copied"
    images = torch.rand(2, 3, 64, 64)
    torch.testing.assert_close(model(images), theirs(images))


def test_projections_take_their_letters(tmp_path: Path) -> None:
    theirs = source().state_dict()
    model, transfer, before = begun(MIXED, saved(theirs, tmp_path / "w.pth"))
    ours = model.backbone.state_dict()
    for name, tensor in ours.items():
        expected = theirs[name] if name in transfer.copied else before[name]
        if name in transfer.in_part:
            block, _, kind = name.partition(".attn.")
            whole = theirs[f"{block}.attn.qkv.{kind.partition('.')[2]}"]
            thirds = {"q": whole[:64], "k": whole[64:128], "v": whole[128:]}
            letters = transfer.in_part[name].removesuffix(" of attn.qkv").split(", ")
            expected = torch.cat([thirds[letter] for letter in letters])
        assert torch.equal(tensor, expected), name
    assert {name for name in ours if name.endswith("proj.weight")} <= set(transfer.copied)
    assert {*transfer.copied, *transfer.in_part, *transfer.initialised} == set(ours)
    assert str(transfer).splitlines()[1:] == [
        "  12 in part: q of attn.qkv in layer 0; k, v of attn.qkv in layers 0–1, 3–4; q, k of attn.qkv in layer 2",
        "  8 initialised: blocks.2.attn.w_e, blocks.2.attn.w_r, blocks.2.attn.regulariser, blocks.2.attn.concat, "
        "blocks.5.attn.eta, blocks.5.attn.u",
        "  2 of the source not used: blocks.5.attn.qkv",
    ]


def test_families_of_all_layers(tmp_path: Path) -> None:
    _, transfer, _ = begun("tssa", saved(source().state_dict(), tmp_path / "w.pth"))
    assert str(transfer).splitlines()[1:] == [
        "  18 initialised: blocks.0–5.attn.eta, blocks.0–5.attn.u",
        "  12 of the source not used: blocks.0–5.attn.qkv",
    ]


def test_other_sizes(tmp_path: Path) -> None:
    """timm resizes the position code and sums over channels; a head of other classes stays as initialised."""
    weights = saved(source(num_classes=1000).state_dict(), tmp_path / "w.pth")
    model, transfer, before = begun("softmax", weights, image_size=32, channels=1, mean=[0.0], std=[1.0])
    expected = timm.create_model(
        NAME, pretrained=True, pretrained_cfg_overlay={"file": weights}, img_size=32, in_chans=1, num_classes=7
    ).state_dict()
    for name, tensor in model.backbone.state_dict().items():
        assert torch.equal(tensor, before[name] if name.startswith("head") else expected[name]), name
    assert str(transfer).splitlines() == [
        f"weights from {weights}: 78 tensors copied (resized: pos_embed, patch_embed.proj)",
        "  2 initialised: head (7 × 64; the source has 1000 × 64)",
    ]


@pytest.mark.parametrize(("sizes", "classes"), [({"in_chans": 1}, 7), ({"num_classes": 0}, 0)])
def test_files_of_other_channels_and_classes_than_timms(sizes: dict[str, int], classes: int, tmp_path: Path) -> None:
    theirs = source(**sizes).state_dict()
    channels = sizes.get("in_chans", 3)
    shapes = {"channels": channels, "mean": [0.0] * channels, "std": [1.0] * channels}
    model, transfer, _ = begun("softmax", saved(theirs, tmp_path / "w.pth"), **shapes)
    ours = model.backbone.state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in transfer.copied)
    assert list(transfer.initialised) == ([] if classes else ["head.weight", "head.bias"])


def test_timms_own(monkeypatch: pytest.MonkeyPatch) -> None:
    theirs = source(img_size=160, num_classes=1000).state_dict()
    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", lambda *_, **__: dict(theirs))
    model, transfer, _ = begun("symmetric", TIMM)
    assert torch.equal(model.backbone.state_dict()["blocks.3.attn.kv.weight"], theirs["blocks.3.attn.qkv.weight"][64:])
    assert str(transfer).startswith(f"weights from timm ({NAME}): 66 tensors copied (resized: pos_embed)")

    def unreachable(*_: object, **__: object) -> None:
        raise OSError("no network\nat all")

    monkeypatch.setattr("timm.models._builder.load_state_dict_from_hf", unreachable)
    with pytest.raises(CheckpointError, match=f"^timm's weights of {NAME} cannot be fetched: no network at all$"):
        begun("symmetric", TIMM)


def other_architecture() -> dict[str, Tensor]:
    return {**source().state_dict(), "blocks.6.norm1.weight": torch.zeros(64)}


UNUSABLE: dict[str, tuple[Any, str]] = {
    "text.pth": (b"hello", r"cannot be read \(\w+\); it is cut short, damaged, or not a file of tensors"),
    "text.safetensors": (b"hello", r"cannot be read \(SafetensorError\); it is cut short"),
    "list.pth": ([1, 2], r"cannot be read \(AttributeError\); it is cut short, damaged, or not a file of tensors"),
    "numbers.pth": ({"epoch": 3}, "holds no tensors"),
    "object.pth": (source, r"cannot be read \(\w+\); it is cut short"),
    "deeper.pth": (other_architecture, f"is of another architecture than {NAME}: Unexpected key.*blocks.6.norm1"),
    "resnet.pt": ({"conv1.weight": torch.zeros(3)}, "is not in timm's naming: its first tensor is conv1.weight"),
}


@pytest.mark.parametrize("file", UNUSABLE)
def test_unusable_files_are_told_in_one_line(file: str, tmp_path: Path) -> None:
    content, expected = UNUSABLE[file]
    path = tmp_path / file
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        saved(content() if callable(content) else content, path)
    with pytest.raises(CheckpointError, match=f"^{path}: {expected}") as caught:
        begun("softmax", str(path))
    assert "\n" not in str(caught.value)


def test_cut_short_and_missing(tmp_path: Path) -> None:
    path = tmp_path / "w.safetensors"
    save_file(source().state_dict(), path)
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match="cannot be read"):
        begun("softmax", str(path))
    path.unlink()
    with pytest.raises(CheckpointError, match=f"^{path}: there is no such file$"):
        begun("softmax", str(path))
