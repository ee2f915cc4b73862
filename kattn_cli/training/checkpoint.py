"""Checkpoints: weights as safetensors, and the state that resuming needs; written whole or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import nn

from kattn_cli.errors import CheckpointError

FOLDER = "checkpoints"
STATE = "resume.pt"
_RECIPE_KEY = "recipe"


def weights_path(run: Path, which: str) -> Path:
    """``which``: ``best`` or ``last``."""
    return run / FOLDER / f"{which}.safetensors"


def save_weights(path: Path, model: nn.Module, recipe: dict[str, Any], **metadata: Any) -> None:
    """Write the weights, with the recipe's model, attention and data sections in the file's header."""
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in model.state_dict().items()}
    header = {_RECIPE_KEY: json.dumps(recipe), **{key: str(value) for key, value in metadata.items()}}
    _write_whole(path, lambda neighbour: save_file(tensors, neighbour, metadata=header))


def load_weights(path: Path, model: nn.Module, recipe: dict[str, Any]) -> dict[str, str]:
    """Load weights written by :func:`save_weights` into ``model``; returns the file's metadata.

    Raises:
        CheckpointError: if the file is missing, cut short, made by another recipe, or does not fit.
    """
    if not path.is_file():
        raise CheckpointError(f"{path}: there is no such checkpoint")
    try:
        with safe_open(path, framework="pt") as file:
            metadata = file.metadata() or {}
        tensors = load_file(path)
    except (SafetensorError, OSError) as error:
        raise CheckpointError(f"{path}: {_damage(path, error)}") from None
    if _RECIPE_KEY in metadata:
        _same_recipe(path, json.loads(metadata[_RECIPE_KEY]), recipe)
    wanted = model.state_dict()
    if missing := [name for name in wanted if name not in tensors]:
        raise CheckpointError(f"{path}: does not fit the recipe: {_some(missing)} missing")
    if extra := [name for name in tensors if name not in wanted]:
        raise CheckpointError(f"{path}: does not fit the recipe: {_some(extra)} not in the model")
    for name, tensor in wanted.items():
        if tensor.shape != tensors[name].shape:
            have, want = tuple(tensors[name].shape), tuple(tensor.shape)
            raise CheckpointError(f"{path}: does not fit the recipe: {name} is {have}, the model's is {want}")
    model.load_state_dict(tensors)
    return metadata


def save_state(run: Path, state: dict[str, Any]) -> None:
    """Write all that resuming needs: weights, optimizer, step, sums of the epoch so far."""
    _write_whole(run / FOLDER / STATE, lambda neighbour: torch.save(state, neighbour))


def load_state(run: Path) -> dict[str, Any]:
    """What :func:`save_state` wrote.

    Raises:
        CheckpointError: if it is missing or cannot be read.
    """
    path = run / FOLDER / STATE
    if not path.is_file():
        raise CheckpointError(f"{run}: has no state to resume from")
    try:
        return dict(torch.load(path, map_location="cpu", weights_only=True))
    except Exception as error:
        raise CheckpointError(f"{path}: cannot be read ({type(error).__name__}); it is cut short or damaged") from None


def _write_whole(path: Path, write: Callable[[Path], object]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    neighbour = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        write(neighbour)
        with neighbour.open("rb") as file:
            os.fsync(file.fileno())
        os.replace(neighbour, path)
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be written: {error.strerror or error}") from None
    finally:
        neighbour.unlink(missing_ok=True)


def _damage(path: Path, error: Exception) -> str:
    """How much of the file is there, where its header still says how long it should be."""
    data = path.read_bytes()
    length = int.from_bytes(data[:8], "little")
    try:
        header = json.loads(data[8 : 8 + length])
        offsets = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
    except (ValueError, KeyError, TypeError, AttributeError):
        return f"is not a safetensors file ({error})"
    whole = 8 + length + max(offsets, default=0)
    return f"is cut short ({len(data):,} of {whole:,} bytes)" if len(data) < whole else f"is damaged ({error})"


def _same_recipe(path: Path, made_by: dict[str, Any], recipe: dict[str, Any]) -> None:
    """An option that the file's sections do not know came with a later version, where its default changes nothing."""
    made, asked = _flat(made_by), _flat(json.loads(json.dumps(recipe)))
    sections = {key.rpartition(".")[0] for key in made}
    known = [key for key in {**made, **asked} if key in made or key.rpartition(".")[0] not in sections]
    changed = [key for key in known if made.get(key) != asked.get(key)]
    if changed:
        what = ", ".join(f"{key} was {made.get(key)} and is {asked.get(key)}" for key in changed[:3])
        raise CheckpointError(f"{path}: was made by another recipe: {what}")


def _flat(tree: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more + (" is" if len(names) == 1 else " are")
