"""Checkpoints: weights as safetensors files, and the state that resuming needs; the one before the last is kept.

A file is written whole or not at all. ``best.safetensors`` becomes ``best.previous.safetensors`` when a new one takes
its name. The weights carry a checksum (CRC-32) in their header, the state one of each record, as every zip file does.
A training that goes on uses the state before the last should that be missing, cut short or damaged. Nothing else uses
other weights than those asked for.
"""

from __future__ import annotations

import io
import json
import os
import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
import torch
from safetensors import SafetensorError
from safetensors.torch import load, save_file
from torch import Tensor, nn

from kattn_cli.errors import CheckpointError
from kattn_cli.recipe.schema import flat
from kattn_cli.runs.weights import CHOICES, FOLDER, fingerprint_of, previous_path, weights_path
from kattn_cli.runs.whole_file import faults_as, replacing

STATE = "resume.pt"
_RECIPE_KEY = "recipe"
_CHECKSUM_KEY = "crc32"
_DOS_FOLDER = 0x10
"""The attribute of a zip's record with which torch.load reads nothing and returns whatever is in memory."""

_OF_NUMBERS = [np.float64(0).__reduce__()[0], np.dtype, np.dtypes.Float64DType]
"""What unpickles a number of numpy. Earlier versions wrote one into the states of segmentation."""

OnDamage = Callable[[str], object]
"""Takes one line: which checkpoint cannot be used, and the step of the one that is used instead."""
T = TypeVar("T")


class _Damage(Exception):
    """The fault of a file, worded as the end of a sentence that begins with its path."""


def kept_epochs(run: Path) -> list[int]:
    """Return the epochs whose weights are kept, in order."""
    names = (re.fullmatch(r"epoch-(\d{4,})", path.stem) for path in (run / FOLDER).glob("epoch-*.safetensors"))
    return sorted(int(name[1]) for name in names if name)


def has_state(run: Path) -> bool:
    """Return whether there is a state to resume from, if only the previous one."""
    path = run / FOLDER / STATE
    return path.is_file() or previous_path(path).is_file()


def save_weights(
    path: Path, weights: nn.Module | Mapping[str, Tensor], recipe: dict[str, Any], **metadata: Any
) -> None:
    """Write the weights, with the recipe's model, attention and data sections in the file's header.

    Raises:
        CheckpointError: if they cannot be written; what was there before stays.
    """
    named = weights.state_dict() if isinstance(weights, nn.Module) else weights
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in named.items()}
    header = {_RECIPE_KEY: json.dumps(recipe), **{key: str(value) for key, value in metadata.items()}}
    header[_CHECKSUM_KEY] = _checksum(tensors, header)
    keep = previous_path(path) if _looks_whole(path) else None
    with faults_as(CheckpointError, path), replacing(path, keep) as neighbour:
        try:
            save_file(tensors, neighbour, metadata=header)
        except SafetensorError as error:
            raise _fault_in(error) or error from None
        with suppress(OSError):  # safetensors 0.8 lets only its owner read a file; the folder says who may
            neighbour.chmod(neighbour.parent.stat().st_mode & 0o666)


class Loaded(NamedTuple):
    """What a file of weights says of itself, and the fingerprint of what was read of it."""

    metadata: dict[str, str]
    fingerprint: str

    @property
    def step(self) -> int:
        """The step of the training after which the weights were kept; 0 where the file does not say."""
        step = self.metadata.get("step", "")
        return int(step) if step.isdecimal() else 0


def load_weights(path: Path, model: nn.Module, recipe: dict[str, Any], used_as: str = "the recipe") -> Loaded:
    """Load weights written by :func:`save_weights` into ``model``, and return what they are.

    Args:
        recipe: what they were made by.
        used_as: what says how the model is built, for the message that they do not fit.

    Raises:
        CheckpointError: if the file is missing, damaged or made by another recipe, or does not fit. Other weights are
            never taken in its place; which of the run's can be is said.
    """
    try:
        tensors, loaded = _read_weights(path)
    except _Damage as damage:
        raise CheckpointError(f"{path}: {damage}{_other_weights(path)}") from None
    if _RECIPE_KEY in loaded.metadata:
        _same_recipe(path, json.loads(loaded.metadata[_RECIPE_KEY]), recipe)
    _fits(path, tensors, model.state_dict(), used_as)
    model.load_state_dict(tensors)
    return loaded


def damage_of(path: Path) -> str:
    """Return what is wrong with a file of weights, as the end of a sentence; empty if nothing is."""
    try:
        _read_weights(path)
    except _Damage as damage:
        return str(damage)
    return ""


def _other_weights(path: Path) -> str:
    """Return what may be asked for in place of a run's weights that cannot be read, as the end of a sentence."""
    if path.parent.name != FOLDER:
        return ""
    if path.stem not in CHOICES:
        return "; without that file the epoch is left out"
    found = []
    for which in CHOICES:
        with suppress(_Damage):
            step = _read_weights(weights_path(path.parent.parent, which))[1].step
            found.append(f"--checkpoint {which} (step {step:,})")
    return f"; others can be asked for: {', '.join(found)}" if found else ""


def save_state(run: Path, state: dict[str, Any]) -> None:
    """Write all that resuming needs: weights, optimizer, step (``state["progress"]["step"]``), sums of the epoch.

    Raises:
        CheckpointError: if it cannot be written; what was there before stays.
        TypeError: if it has what :func:`load_state` would refuse to read, which is a mistake of the program.
    """
    _require_readable(state, "state")
    path = run / FOLDER / STATE
    keep = previous_path(path) if _looks_whole(path) else None
    with faults_as(CheckpointError, path), replacing(path, keep) as neighbour, _File(neighbour, "wb") as file:
        try:
            torch.save(state, file)
        except RuntimeError as error:
            raise file.fault or error from None


def _require_readable(value: Any, name: str) -> None:
    """Raises:
    TypeError: if ``value`` is no tensor, nor plain data; a numpy number is written without a word and never read.
    """
    if isinstance(value, Mapping):
        for key, one in value.items():
            _require_readable(one, f"{name}.{key}")
    elif isinstance(value, list | tuple):
        for number, one in enumerate(value):
            _require_readable(one, f"{name}[{number}]")
    elif value is not None and type(value) not in (bool, int, float, str) and not isinstance(value, Tensor):
        raise TypeError(f"{name}: a {type(value).__name__} cannot be read again from a checkpoint")


def load_state(run: Path, on_damage: OnDamage | None = None) -> dict[str, Any]:
    """Return what :func:`save_state` wrote last, or what it wrote before that if the last is missing or damaged.

    In the second case ``on_damage`` is called.

    Raises:
        CheckpointError: if neither can be read.
    """
    if not has_state(run):
        raise CheckpointError(f"{run}: has no state to resume from")
    return _newest_usable(run / FOLDER / STATE, _read_state, _step_of, on_damage)[1]


def _newest_usable(
    path: Path, read: Callable[[Path], T], step_of: Callable[[T], object], on_damage: OnDamage | None
) -> tuple[Path, T]:
    """Return the file used, the newest of the two that can be read, and what ``read`` made of it."""
    try:
        return path, read(path)
    except _Damage as error:
        damage = error
    before = previous_path(path)
    try:
        found = read(before)
    except _Damage as error:
        also = f"; the one before it, {before.name}, {error}" if before.exists() else ""
        raise CheckpointError(f"{path}: {damage}{also}") from None
    if on_damage:
        run = path.parent.parent if path.parent.name == FOLDER else path.parent
        which = "best" if path.stem == "best" else "last"
        step = str(step_of(found))
        at = f", step {int(step):,}" if step.isdecimal() else ""
        on_damage(f"{run}: the {which} checkpoint {damage}; using the one before it{at}.")
    return before, found


def _step_of(state: dict[str, Any]) -> object:
    progress = state.get("progress")
    return progress.get("step") if isinstance(progress, dict) else None


def _read_state(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise _Damage("is missing")
    size = _size(path.stat().st_size)
    try:
        with zipfile.ZipFile(path) as archive:
            folders = [one.filename for one in archive.infolist() if one.external_attr & _DOS_FOLDER]
            if record := archive.testzip() or next(iter(folders), None):
                raise _Damage(f"is damaged ({size}, in {record})")
        with torch.serialization.safe_globals(_OF_NUMBERS):
            return dict(torch.load(path, map_location="cpu", weights_only=True))
    except OSError as error:
        raise _Damage(f"cannot be read ({error.strerror or error})") from None
    except (_Damage, MemoryError):
        raise
    except Exception as error:  # zipfile, pickle and torch each have several
        raise _Damage(f"is cut short or damaged ({size}, {type(error).__name__})") from None


def _read_weights(path: Path) -> tuple[dict[str, Tensor], Loaded]:
    """Return the tensors of a file, and what they are; read once, so that both are of the same bytes."""
    if not path.is_file():
        raise _Damage("is a folder" if path.is_dir() else "is missing")
    try:
        content = path.read_bytes()
        tensors = load(content)
        metadata = _metadata(content)
        json.loads(metadata.get(_RECIPE_KEY, "{}"))
    except (SafetensorError, OSError, ValueError, KeyError) as error:
        raise _Damage(_what_is_wrong(path, error)) from None
    rest = {key: value for key, value in metadata.items() if key != _CHECKSUM_KEY}
    if _CHECKSUM_KEY in metadata and metadata[_CHECKSUM_KEY] != _checksum(tensors, rest):
        raise _Damage("is damaged (its checksum is another)")
    return tensors, Loaded(metadata, fingerprint_of(io.BytesIO(content)))


def _metadata(content: bytes) -> dict[str, str]:
    """Return the metadata of a safetensors file, whose header safetensors has checked."""
    header = json.loads(content[8 : 8 + int.from_bytes(content[:8], "little")])
    return dict(header.get("__metadata__") or {})


def _checksum(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> str:
    """Return the CRC-32 of names, shapes, types, bytes and metadata, as eight hexadecimal digits."""
    crc = zlib.crc32(json.dumps(metadata, sort_keys=True).encode())
    # By name, since a file need not give the tensors back in the order they were written in.
    for name, tensor in sorted(tensors.items()):
        crc = zlib.crc32(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode(), crc)
        crc = zlib.crc32(tensor.reshape(-1).view(torch.uint8).numpy().data, crc)
    return f"{crc:08x}"


def _looks_whole(path: Path) -> bool:
    """Return whether a file seems complete: one that is cut short is not worth keeping as the previous one."""
    try:
        if path.suffix == ".pt":
            # A zip's index stands at its end, so a file that is cut short has none.
            return zipfile.is_zipfile(path)
        have, whole = _lengths(path)
    except (OSError, ValueError):
        return False
    return have == whole


def _lengths(path: Path) -> tuple[int, int]:
    """Return the bytes that a safetensors file has, and those it should have by its header.

    Raises:
        ValueError: if it has no header.
    """
    have = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
        if length > have:
            raise ValueError("no header")
        header = json.loads(file.read(length))
    try:
        ends = [entry["data_offsets"][1] for key, entry in header.items() if key != "__metadata__"]
        return have, 8 + length + max(ends, default=0)
    except (KeyError, TypeError, AttributeError, IndexError) as error:
        raise ValueError("no header") from error


def _what_is_wrong(path: Path, error: Exception) -> str:
    """Return the fault in words; of a file cut short, how much is there of what its header promises."""
    if isinstance(error, OSError):
        return f"cannot be read ({error.strerror or error})"
    try:
        have, whole = _lengths(path)
    except (OSError, ValueError):
        return f"is not a safetensors file ({error})"
    if have >= whole:
        return f"is damaged ({error})"
    shown = (_size(have), _size(whole))
    of = f"{shown[0]} of {shown[1]}" if have >= 1e6 and shown[0] != shown[1] else f"{have:,} of {whole:,} bytes"
    return f"is cut short ({of})"


def _size(count: int) -> str:
    return f"{count / 1e6:,.1f} MB" if count >= 1e6 else f"{count:,} bytes"


class _File(io.FileIO):
    """A file that remembers the system's fault, which torch.save's C++ writer turns into a RuntimeError of its own."""

    fault: OSError | None = None

    def write(self, data: Any) -> int:
        view = memoryview(data).cast("B")
        done = 0
        try:
            while done < len(view):
                done += super().write(view[done:]) or 0
        except OSError as fault:
            self.fault = fault
            raise
        return done


def _fault_in(error: SafetensorError) -> OSError | None:
    """Return the system's fault that the text of ``error`` names, as safetensors 0.4 or later writes it."""
    number = re.search(r"(?:os error |code: )(\d+)", str(error))
    return OSError(int(number[1]), os.strerror(int(number[1]))) if number else None


def _fits(path: Path, tensors: Mapping[str, Tensor], wanted: Mapping[str, Tensor], used_as: str) -> None:
    """Refuse tensors whose names or shapes are not those of the model, ``wanted``."""
    if missing := [name for name in wanted if name not in tensors]:
        raise CheckpointError(f"{path}: does not fit {used_as}: {_some(missing)} missing")
    if extra := [name for name in tensors if name not in wanted]:
        raise CheckpointError(f"{path}: does not fit {used_as}: {_some(extra)} not in the model")
    for name, tensor in wanted.items():
        if tensor.shape != tensors[name].shape:
            have, want = tuple(tensors[name].shape), tuple(tensor.shape)
            raise CheckpointError(f"{path}: does not fit {used_as}: {name} is {have}, the model's is {want}")


def _same_recipe(path: Path, made_by: dict[str, Any], recipe: dict[str, Any]) -> None:
    """Refuse weights made by another recipe.

    Options that the file's sections do not know came with a later version, whose default changes nothing.
    """
    # Through JSON, as the file's own recipe went, so that tuples and lists compare equal.
    made, asked = flat(made_by), flat(json.loads(json.dumps(recipe)))
    sections = {key.rpartition(".")[0] for key in made}
    known = [key for key in {**made, **asked} if key in made or key.rpartition(".")[0] not in sections]
    changed = [key for key in known if made.get(key) != asked.get(key)]
    if changed:
        what = ", ".join(f"{key} was {made.get(key)} and is {asked.get(key)}" for key in changed[:3])
        raise CheckpointError(f"{path}: was made by another recipe: {what}")


def _some(names: list[str]) -> str:
    more = f" and {len(names) - 2} more" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more + (" is" if len(names) == 1 else " are")
