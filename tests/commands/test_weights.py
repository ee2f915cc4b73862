"""Training that begins from pretrained weights, as a user starts it."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
import timm
import torch
from safetensors.torch import load_file

RECIPE = """\
name: tuned
data: {name: digits, image_size: 32}
model: {name: test_vit, weights: w.pth}
attention: {name: symmetric, layers: {-1: softmax}}
train: {epochs: 1, batch_size: 256, lr: 1e-9, warmup_epochs: 0, weight_decay: 0}
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a recipe and the weights that it names."""
    monkeypatch.chdir(tmp_path)
    torch.manual_seed(0)
    torch.save(timm.create_model("test_vit", img_size=64, num_classes=5).state_dict(), "w.pth")
    Path("tuned.yaml").write_text(RECIPE, encoding="utf-8")
    return tmp_path


def kattn(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, *arguments: str) -> tuple[int, str, str]:
    """Exit code, standard output, standard error of ``kattn`` in this process."""
    from kattn_cli import cli

    monkeypatch.setattr(sys, "argv", ["kattn", *arguments, "--device", "cpu"])
    code: int | str | None = 0
    try:
        cli.main()
    except SystemExit as leaving:
        code = leaving.code
    captured = capfd.readouterr()
    return int(code or 0), captured.out, captured.err


def test_train_begins_from_weights_and_says_so(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    code, out, err = kattn(capfd, monkeypatch, "train", "tuned.yaml")
    assert code == 0, err
    assert (
        f"results/tuned/0: weights from {folder / 'w.pth'}: 68 tensors copied (resized: pos_embed, patch_embed" in out
    )
    assert "  10 in part: k, v of attn.qkv in layers 0–4\n" in out
    assert "  2 initialised: head (10 × 64; the source has 5 × 64)\n" in out
    run = folder / "results" / "tuned" / "0"
    weights = json.loads((run / "manifest.json").read_text())["weights"]
    assert weights["source"] == str(folder / "w.pth")
    assert weights["in_part"]["blocks.0.attn.kv.weight"] == "k, v of attn.qkv"
    assert len(weights["copied"]) == 68
    assert f"weights: {folder / 'w.pth'}" in (run / "recipe.yaml").read_text()
    before, after = torch.load("w.pth"), load_file(run / "checkpoints" / "last.safetensors")
    for ours, theirs in [
        (after["backbone.blocks.0.attn.kv.weight"], before["blocks.0.attn.qkv.weight"][64:]),
        (after["backbone.blocks.5.attn.qkv.weight"], before["blocks.5.attn.qkv.weight"]),
    ]:
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)


def test_train_begins_from_another_run(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Trained at 16 pixels with softmax, it goes on at 32 with another mechanism."""
    first = ["tuned.yaml", "data.image_size=16", "model.weights=null", "attention={name: softmax}"]
    assert kattn(capfd, monkeypatch, "train", *first, "name=first")[0] == 0
    begun = ["tuned.yaml", "model.weights=null", "name=second", "init_from=results/first/0"]
    code, out, err = kattn(capfd, monkeypatch, "train", *begun)
    assert code == 0, err
    source = folder / "results" / "first" / "0" / "checkpoints" / "best.safetensors"
    assert f"results/second/0: weights from {source}: 70 tensors copied (resized: pos_embed)\n" in out
    assert "  10 in part: k, v of attn.qkv in layers 0–4\n" in out
    run = folder / "results" / "second" / "0"
    assert json.loads((run / "manifest.json").read_text())["weights"]["source"] == str(source)
    assert f"init_from: {folder / 'results' / 'first' / '0'}\n" in (run / "recipe.yaml").read_text()
    before, after = load_file(source), load_file(run / "checkpoints" / "last.safetensors")
    for name in ("head.weight", "blocks.5.attn.qkv.weight"):
        torch.testing.assert_close(after[f"backbone.{name}"], before[f"backbone.{name}"], rtol=0, atol=1e-6)
    code, _, err = kattn(capfd, monkeypatch, "train", *begun[:-1], "init_from=results")
    assert code == 2
    assert "init_from" in err
    assert f"{folder / 'results'} has no checkpoint" in err


def test_a_run_does_without_its_weights_once_it_has_begun(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert kattn(capfd, monkeypatch, "train", "tuned.yaml")[0] == 0
    (folder / "w.pth").unlink()
    assert kattn(capfd, monkeypatch, "eval", "tuned")[0] == 0
    manifest = folder / "results" / "tuned" / "0" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"finished"', '"interrupted"'))
    code, out, err = kattn(capfd, monkeypatch, "train", "tuned.yaml", "--resume")
    assert code == 0, err
    assert "going on from step 5 of 5" in out
    assert "weights from" not in out
    code, _, err = kattn(capfd, monkeypatch, "train", "tuned.yaml")
    assert code == 2
    assert f"model.weights  there is no file {folder / 'w.pth'}" in err


def test_unusable_weights_are_told_before_there_is_a_run(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "w.pth").write_bytes(b"no weights")
    code, out, err = kattn(capfd, monkeypatch, "train", "tuned.yaml")
    assert code == 2
    assert f"model.weights  {folder / 'w.pth'}: cannot be read (" in err
    assert "Traceback" not in out + err
    assert not (folder / "results").exists()
