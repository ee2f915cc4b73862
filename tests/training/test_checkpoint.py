"""Checkpoints: what is refused, and in which words."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch import nn

from kattn_cli.errors import CheckpointError
from kattn_cli.training.checkpoint import (
    STATE,
    load_state,
    load_weights,
    save_state,
    save_weights,
    weights_path,
)

RECIPE = {"attention": {"name": "rpc", "iterations": 4}, "model": {"dim": 8}}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = weights_path(tmp_path, "last")
    torch.manual_seed(0)
    save_weights(path, nn.Linear(3, 2), RECIPE, step=7)
    return path


def test_round_trip(saved: Path) -> None:
    model = nn.Linear(3, 2)
    assert load_weights(saved, model, RECIPE)["step"] == "7"
    torch.manual_seed(0)
    assert torch.equal(model.weight, nn.Linear(3, 2).weight)
    assert [path.name for path in saved.parent.iterdir()] == ["last.safetensors"]


def refused(path: Path, model: nn.Module, recipe: dict[str, object] | None = None) -> str:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(CheckpointError) as caught:
        load_weights(path, model, recipe or RECIPE)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_truncated(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in (len(whole) - 1, len(whole) - 20):
        saved.write_bytes(whole[:length])
        assert refused(saved, nn.Linear(3, 2)).endswith(f"is cut short ({length:,} of {len(whole):,} bytes)")
    for length in (0, 5, 40):
        saved.write_bytes(whole[:length])
        assert "is not a safetensors file" in refused(saved, nn.Linear(3, 2))


def test_missing_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "none", nn.Linear(3, 2)).endswith("there is no such checkpoint")


def test_another_shape(saved: Path) -> None:
    assert "does not fit the recipe: weight is (2, 3), the model's is (2, 4)" in refused(saved, nn.Linear(4, 2))


def test_missing_key(saved: Path) -> None:
    tensors = load_file(saved)
    del tensors["bias"]
    save_file(tensors, saved)
    assert "does not fit the recipe: bias is missing" in refused(saved, nn.Linear(3, 2))


def test_key_that_is_too_many(saved: Path) -> None:
    assert "does not fit the recipe: bias is not in the model" in refused(saved, nn.Linear(3, 2, bias=False))


def test_another_recipe(saved: Path) -> None:
    other = {**RECIPE, "attention": {"name": "rpc", "iterations": 6}}
    assert refused(saved, nn.Linear(3, 2), other).endswith(
        "was made by another recipe: attention.iterations was 4 and is 6"
    )


def test_an_option_of_a_later_version(saved: Path) -> None:
    """The file does not know it: its default changes nothing. An exception for a layer it does not know does."""
    later = {**RECIPE, "attention": {**RECIPE["attention"], "textbook": False}}  # type: ignore[dict-item]
    load_weights(saved, nn.Linear(3, 2), later)
    exception = {**RECIPE, "attention": {**RECIPE["attention"], "layers": {"0": {"name": "tssa"}}}}  # type: ignore[dict-item]
    assert "attention.layers.0.name was None and is tssa" in refused(saved, nn.Linear(3, 2), exception)


def test_state(tmp_path: Path) -> None:
    save_state(tmp_path, {"step": 3, "weights": torch.ones(2)})
    assert load_state(tmp_path)["step"] == 3
    path = tmp_path / "checkpoints" / STATE
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CheckpointError, match="is cut short or damaged"):
        load_state(tmp_path)
    with pytest.raises(CheckpointError, match="has no state to resume from"):
        load_state(tmp_path / "elsewhere")


def test_write_that_fails_keeps_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(CheckpointError, match="cannot be written: No space left on device"):
        save_weights(saved, nn.Linear(3, 2), RECIPE)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["last.safetensors"]
