"""Models that begin from the weights of a run or of a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import timm
import torch
from reference_vectors import assert_equal
from safetensors.torch import save_file
from timm.layers import resample_abs_pos_embed, resample_patch_embed
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor

from kattn_cli.errors import CheckpointError
from kattn_cli.models import Classifier, build_model
from kattn_cli.models.initial import CHECKPOINTS, initialise_from, source_fault
from kattn_cli.models.pretrained import load_pretrained
from kattn_cli.models.transfer import Transfer
from kattn_cli.recipe.model import ImageModel, TimmModel, Tost, Vit
from kattn_cli.recipe.schema import Attention
from kattn_cli.runs.weights import weights_path
from kattn_cli.training.checkpoint import save_weights

SMALL: dict[str, Any] = {"patch_size": 2, "dim": 16, "depth": 2, "heads": 2}
VIT = Vit(**SMALL)
TOKEN = Vit(**SMALL, pool="token")
TOST = Tost(**SMALL)
BACKBONES: dict[str, ImageModel] = {
    "vit": VIT,
    "vit with class token": TOKEN,
    "tost": TOST,
    "timm's": TimmModel(name="test_vit"),
}


def built(
    model: ImageModel, attention: object = "softmax", *, seed: int = 0, channels: int = 1, **sizes: int
) -> Classifier:
    torch.manual_seed(seed)
    chosen = Attention.model_validate(attention if isinstance(attention, dict) else {"name": attention})
    size = {"image_size": 32 if isinstance(model, TimmModel) else 8, "classes": 5, **sizes}
    classifier = build_model(model, chosen, **size, channels=channels, mean=[0.3] * channels, std=[0.4] * channels)
    with torch.no_grad():
        for parameter in classifier.parameters():
            parameter.add_(torch.randn_like(parameter) / 10)
    return classifier.eval()


def weights(model: Classifier) -> dict[str, Tensor]:
    return {name: tensor.clone() for name, tensor in model.backbone.state_dict().items()}


def saved(model: Classifier, folder: Path, which: str = "best") -> str:
    """A run's folder with ``model`` for its checkpoint."""
    save_weights(weights_path(folder, which), model, {})
    return str(folder)


def begun(model: Classifier, source: Classifier, folder: Path) -> tuple[Transfer, dict[str, Tensor], dict[str, Tensor]]:
    """What became of the tensors of ``model``, and these as they were before and are now."""
    before = weights(model)
    return initialise_from(model, saved(source, folder)), before, weights(model)


@pytest.mark.parametrize("name", BACKBONES)
def test_same_model(name: str, tmp_path: Path) -> None:
    theirs, ours = built(BACKBONES[name]), built(BACKBONES[name], seed=1)
    transfer = begun(ours, theirs, tmp_path)[0]
    assert transfer == Transfer(str(tmp_path / CHECKPOINTS[0]), list(weights(ours)), [], {}, {}, [])
    images = torch.rand(2, 1, 32, 32) if name == "timm's" else torch.rand(2, 1, 8, 8)
    assert torch.equal(ours(images), theirs(images))


def test_best_before_last(tmp_path: Path) -> None:
    best, last, ours = (built(VIT, seed=seed) for seed in range(3))
    assert initialise_from(ours, saved(last, tmp_path, "last")).source == str(tmp_path / CHECKPOINTS[1])
    assert torch.equal(weights(ours)["pos_embed"], weights(last)["pos_embed"])
    initialise_from(ours, saved(best, tmp_path))
    assert torch.equal(weights(ours)["pos_embed"], weights(best)["pos_embed"])


@pytest.mark.parametrize("file", ["w.safetensors", "w.pth", "resume.pt", "ema.pt"])
@pytest.mark.parametrize("naming", ["ours", "timm's"])
def test_files(file: str, naming: str, tmp_path: Path) -> None:
    """A state of training holds the model beside other things; averaged weights are preferred."""
    theirs, ours = built(TOKEN), built(TOKEN, seed=1)
    state = dict((theirs if naming == "ours" else theirs.backbone).state_dict())
    path, zeros = tmp_path / file, {name: torch.zeros_like(tensor) for name, tensor in state.items()}
    if file == "w.safetensors":
        save_file(state, path)
    else:
        whole = {
            "w.pth": state,
            "resume.pt": {"model": state, "step": 3},
            "ema.pt": {"model": zeros, "model_ema": state},
        }
        torch.save(whole[file], path)
    assert len(initialise_from(ours, str(path)).copied) == len(state)
    assert all(torch.equal(tensor, weights(theirs)[name]) for name, tensor in weights(ours).items())


@pytest.mark.parametrize("sizes", [{"image_size": 64, "channels": 1}, {"image_size": 96, "channels": 3}])
def test_equals_timm(sizes: dict[str, int], tmp_path: Path) -> None:
    """A timm model begins as timm itself would begin it: other grid, other channels, other classes."""
    name, path = "test_vit", tmp_path / "w.pth"
    torch.save(timm.create_model(name, img_size=64, num_classes=9).state_dict(), path)
    ours, expected = (built(TimmModel(name=name), "rpc", **sizes) for _ in range(2))
    transfer, timms = initialise_from(ours, str(path)), load_pretrained(expected, name, str(path))
    assert transfer == timms
    assert all(torch.equal(tensor, weights(expected)[key]) for key, tensor in weights(ours).items())
    assert transfer.resized == (["patch_embed.proj.weight"] if sizes["channels"] == 1 else ["pos_embed"])


@pytest.mark.parametrize("ours", [VIT, TOKEN])
@pytest.mark.parametrize("theirs", [VIT, TOKEN])
def test_position_code_of_another_grid(ours: Vit, theirs: Vit, tmp_path: Path) -> None:
    """Patches by timm's resampling; a class token that both have is kept, one of ours alone begins as built."""
    source, model = built(theirs), built(ours, seed=1, image_size=12)
    transfer, before, after = begun(model, source, tmp_path)
    code, has, wants = weights(source)["pos_embed"], theirs.pool == "token", ours.pool == "token"
    patches = resample_abs_pos_embed(code, [6, 6], num_prefix_tokens=int(has))[:, int(has) :]
    prefix = (code if has else before["pos_embed"])[:, : int(wants)]
    assert torch.equal(after["pos_embed"], torch.cat((prefix, patches), 1))
    assert transfer.resized == ["pos_embed"]
    assert ("cls_token" in transfer.unused) == (has and not wants)
    assert ("cls_token" in transfer.initialised) == (wants and not has)


@pytest.mark.parametrize(("options", "before"), [({"reg_tokens": 4}, 5), ({"no_embed_class": True}, 0)])
def test_other_tokens_before_the_patches(options: dict[str, Any], before: int, tmp_path: Path) -> None:
    """Registers with a position, which ours has no place for; a class token without one."""
    theirs = VisionTransformer(
        img_size=12, patch_size=2, in_chans=1, num_classes=5, embed_dim=16, depth=2, num_heads=2, mlp_ratio=2, **options
    )
    torch.save(theirs.state_dict(), tmp_path / "w.pth")
    code, ours = theirs.state_dict()["pos_embed"], built(TOKEN)
    built_with = weights(ours)["pos_embed"]
    transfer = initialise_from(ours, str(tmp_path / "w.pth"))
    assert code.shape[1] == before + 36
    after = weights(ours)["pos_embed"]
    assert torch.equal(after[:, :1], (code if before else built_with)[:, :1])
    assert torch.equal(after[:, 1:], resample_abs_pos_embed(code[:, before:], [4, 4], num_prefix_tokens=0))
    assert transfer.unused == (["reg_token"] if before else [])


def test_position_code_of_no_square_stays_as_built(tmp_path: Path) -> None:
    theirs = weights(built(VIT)) | {"pos_embed": torch.zeros(1, 15, 16)}
    torch.save(theirs, tmp_path / "w.pth")
    transfer = initialise_from(built(VIT), str(tmp_path / "w.pth"))
    assert transfer.initialised == {"pos_embed": "1 × 16 × 16; the source has 1 × 15 × 16"}


def test_patches_of_another_size(tmp_path: Path) -> None:
    source, model = built(VIT), built(Vit(**{**SMALL, "patch_size": 4}), seed=1, image_size=16)
    transfer, _, after = begun(model, source, tmp_path)
    key = "patch_embed.proj.weight"
    assert torch.equal(after[key], resample_patch_embed(weights(source)[key], [4, 4]))
    assert transfer.resized == [key]


@pytest.mark.parametrize("backbone", ["vit", "tost", "timm's"])
@pytest.mark.parametrize(("theirs", "ours"), [(3, 1), (1, 3)])
def test_other_channels(backbone: str, theirs: int, ours: int, tmp_path: Path) -> None:
    """Of a grey image the model says what its source says: weights are summed over channels, or shared among them."""
    source = built(BACKBONES[backbone], channels=theirs).double()
    model = built(BACKBONES[backbone], seed=1, channels=ours).double()
    transfer = begun(model, source, tmp_path)[0]
    size = 32 if backbone == "timm's" else 8
    grey = torch.rand(2, 1, size, size, dtype=torch.float64)
    assert_equal(model(grey.expand(-1, ours, -1, -1)), source(grey.expand(-1, theirs, -1, -1)))
    assert len(transfer.resized) == 1
    assert not transfer.initialised


@pytest.mark.parametrize("backbone", BACKBONES)
def test_head_of_other_classes_stays_as_built(backbone: str, tmp_path: Path) -> None:
    source, model = built(BACKBONES[backbone]), built(BACKBONES[backbone], seed=1, classes=7)
    transfer, before, after = begun(model, source, tmp_path)
    assert all(torch.equal(after[name], before[name]) for name in ("head.weight", "head.bias"))
    assert list(transfer.initialised) == ["head.weight", "head.bias"]
    width = len(after["head.weight"][0])
    assert str(transfer).splitlines()[1:] == [f"  2 initialised: head (7 × {width}; the source has 5 × {width})"]


BOUND: list[tuple[dict[str, Any], str]] = [
    ({"name": "scaled", "variant": "matrix"}, "blocks.0–1.attn.s (2 × 36 × 36; the source has 2 × 16 × 16)"),
    ({"name": "linformer", "k": 4}, "blocks.0–1.attn.e (2 × 4 × 36; the source has 2 × 4 × 16), blocks.0–1.attn.f"),
    ({"name": "primal", "s": 2}, "blocks.0–1.attn.w_e (2 × 20 × 2; the source has 2 × 16 × 2), blocks.0–1.attn.w_r"),
]


@pytest.mark.parametrize(("attention", "told"), BOUND)
def test_what_is_bound_to_the_number_of_tokens(attention: dict[str, Any], told: str, tmp_path: Path) -> None:
    source = built(TOST, attention)
    assert not begun(built(TOST, attention, seed=1), source, tmp_path)[0].initialised
    transfer, before, after = begun(built(TOST, attention, seed=1, image_size=12), source, tmp_path)
    assert str(transfer).splitlines()[1].partition("initialised: ")[2].startswith(told)
    assert all(torch.equal(before[name], after[name]) for name in transfer.initialised)
    assert {*transfer.copied, *transfer.initialised} == set(after)


def thirds(state: dict[str, Tensor], attn: str, kind: str) -> dict[str, Tensor]:
    """Queries, keys and values of a block's projections, however it joins them."""
    found: dict[str, Tensor] = {}
    for letters in ("qkv", "kv", "qk", "q"):
        if f"{attn}.{letters}.{kind}" in state:
            found |= dict(zip(letters, state[f"{attn}.{letters}.{kind}"].split(16), strict=True))
    return found


@pytest.mark.parametrize(
    ("theirs", "ours", "told"),
    [
        ("softmax", "symmetric", "4 in part: k, v of attn.qkv in layers 0–1"),
        ("softmax", "primal", "4 in part: q, k of attn.qkv in layers 0–1"),
        ({"name": "rpc", "asymmetric": "iterate"}, "softmax", "4 in part: q, k, v of attn.q and attn.kv in layers 0–1"),
        ({"name": "rpc", "asymmetric": "iterate"}, "primal", "4 in part: q, k of attn.q and attn.kv in layers 0–1"),
        ({"name": "rpc"}, "symmetric", ""),
        ("symmetric", "softmax", "4 initialised: blocks.0–1.attn.qkv (the source has no q)"),
        ("primal", "softmax", "4 initialised: blocks.0–1.attn.qkv (the source has no v)"),
    ],
)
def test_letters_of_other_mechanisms(theirs: object, ours: object, told: str, tmp_path: Path) -> None:
    """What both mechanisms have of queries, keys and values is the same after, unless a part is missing."""
    source, model = built(VIT, theirs), built(VIT, ours, seed=1)
    transfer, before, after = begun(model, source, tmp_path)
    assert told in (str(transfer).splitlines()[1:] or [""])[0]
    whole = "initialised" not in told
    for kind in ("weight", "bias"):
        expected = thirds(weights(source) if whole else before, "blocks.1.attn", kind)
        for letter, tensor in thirds(after, "blocks.1.attn", kind).items():
            assert torch.equal(tensor, expected[letter])


def test_other_depth(tmp_path: Path) -> None:
    """The first layers have their like; the others are told."""
    source, model = built(VIT), built(Vit(**{**SMALL, "depth": 5}), seed=1)
    transfer, before, after = begun(model, source, tmp_path / "deeper")
    assert torch.equal(after["blocks.1.mlp.fc1.weight"], weights(source)["blocks.1.mlp.fc1.weight"])
    assert torch.equal(after["blocks.2.mlp.fc1.weight"], before["blocks.2.mlp.fc1.weight"])
    assert "36 initialised: blocks.2–4.norm1, blocks.2–4.attn.qkv" in str(transfer)
    shallower = begun(source, model, tmp_path / "shallower")[0]
    assert "36 of the source not used: blocks.2–4.attn.proj, blocks.2–4.attn.qkv" in str(shallower)
    assert not shallower.initialised


def test_other_width_of_the_mlp(tmp_path: Path) -> None:
    transfer = begun(built(Vit(**SMALL, mlp_ratio=4.0)), built(VIT), tmp_path)[0]
    assert {name.partition(".mlp.")[2] for name in transfer.initialised} == {"fc1.weight", "fc1.bias", "fc2.weight"}


def test_other_stem(tmp_path: Path) -> None:
    """Of other patches our convolutional stem has other layers."""
    transfer = begun(built(Tost(**{**SMALL, "patch_size": 4})), built(TOST), tmp_path)[0]
    assert transfer.initialised["patch_embed.0.0.weight"] == "8 × 1 × 3 × 3; the source has 16 × 1 × 3 × 3"
    assert not [name for name in transfer.initialised if not name.startswith("patch_embed.")]


def test_other_kind_of_backbone_of_the_same_width(tmp_path: Path) -> None:
    transfer, _, after = begun(built(TOST, seed=1), vit := built(VIT), tmp_path)
    blocks = [name for name in after if name.startswith("blocks.") and ".ls" not in name]
    assert all(torch.equal(after[name], weights(vit)[name]) for name in [*blocks, "head.weight"])
    assert {*transfer.copied} == {*blocks, "head.weight", "head.bias"}


@pytest.mark.parametrize("backbone", [Vit, Tost])
def test_other_width_is_another_architecture(backbone: type[Vit] | type[Tost], tmp_path: Path) -> None:
    """η of each head and a bias of the MLP fit by chance. The model stays as it was."""
    source = built(backbone(**SMALL), "tssa")
    model = built(backbone(**{**SMALL, "dim": 32, "mlp_ratio": 1.0}), "tssa")
    before, path = weights(model), tmp_path / CHECKPOINTS[0]
    fit = sum(tensor.shape == weights(source)[name].shape for name, tensor in before.items())
    assert fit >= 5
    with pytest.raises(CheckpointError) as caught:
        initialise_from(model, saved(source, tmp_path))
    assert str(caught.value) == (
        f"{path}: is of another architecture: {fit} of {len(before)} tensors fit "
        "(blocks.0.norm1.weight is 32 here and 16 there)"
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in weights(model).items())


def test_other_naming(tmp_path: Path) -> None:
    path = tmp_path / "resnet.pth"
    torch.save({"conv1.weight": torch.zeros(3)}, path)
    with pytest.raises(CheckpointError, match=f"^{path}: is not in the naming of kattn or timm: .* is conv1.weight$"):
        initialise_from(built(VIT), str(path))


def test_damaged_checkpoint(tmp_path: Path) -> None:
    folder = saved(built(VIT), tmp_path)
    path = tmp_path / CHECKPOINTS[0]
    assert source_fault(folder) == ""
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CheckpointError, match=rf"^{path}: cannot be read \(\w+\); it is cut short.* name another$"):
        initialise_from(built(VIT), folder)


def test_a_best_that_is_gone_is_not_replaced(tmp_path: Path) -> None:
    """But by name; in the first epoch, which ``metrics.csv`` is not there of, there is none yet."""
    best = tmp_path / CHECKPOINTS[0]
    saved(built(VIT), tmp_path, "last")
    (tmp_path / "metrics.csv").touch()
    assert source_fault(str(tmp_path)) == f"{best} is missing; one of last.safetensors can be named in its place"
    best.mkdir()
    assert source_fault(str(tmp_path)) == f"{best} is a folder"
    assert source_fault(str(tmp_path / CHECKPOINTS[1])) == ""


def test_a_link_to_itself(tmp_path: Path) -> None:
    link = tmp_path / "loop"
    link.symlink_to(link)
    assert source_fault(str(link)) == f"{link} is a link to nothing, or to itself"


def test_faults_of_sources(tmp_path: Path) -> None:
    run, file = tmp_path / "tuned" / "0", tmp_path / "weights.bin"
    file.touch()
    run.mkdir(parents=True)
    none = "neither checkpoints/best.safetensors nor checkpoints/last.safetensors"
    expected = {
        run: f"{run} has no checkpoint, {none}",
        tmp_path / "gone": f"there is no run or file {tmp_path / 'gone'}",
        file: f"expected a run's folder, or a file that ends in .safetensors, .pth, .pt, not {file}",
    }
    for source, told in expected.items():
        assert source_fault(str(source)) == told
        with pytest.raises(CheckpointError) as caught:
            initialise_from(built(VIT), str(source))
        assert str(caught.value) == f"init_from: {told}"
    saved(built(VIT), run, "last")
    assert source_fault(str(run)) == ""
    above = run.parent
    assert source_fault(str(above)) == f"{above} has no checkpoint, {none}; name one of the runs in it: 0"
