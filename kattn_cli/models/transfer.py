"""Transfer of tensors from one model to another that has a place for them, and a report on each.

A tensor goes to the tensor of the same name and shape. Where two mechanisms join their projections of queries, keys
and values otherwise (``attn.qkv`` here, ``attn.q`` and ``attn.kv`` there), each letter goes to its letter. What
else a mechanism has of its own stays as initialised.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import timm
import torch
from torch import Tensor, nn

from kattn_cli.errors import CheckpointError

FILE_TYPES = (".safetensors", ".pth", ".pt")

Tensors = dict[str, Tensor]


def read_tensors(file: str | Path) -> Tensors:
    """Return the tensors in ``file`` by name, on the CPU: of a training's state its model's, averaged ones if any.

    Raises:
        CheckpointError: if there is no such file, or it cannot be read, or holds no tensors.
    """
    if not Path(file).is_file():
        raise CheckpointError(f"{file}: there is no such file")
    try:
        state = timm.models.load_state_dict(str(file), weights_only=True)
    except Exception as error:
        why = "it is cut short, damaged, or not a file of tensors; copy it again, or name another"
        raise CheckpointError(f"{file}: cannot be read ({type(error).__name__}); {why}") from None
    tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
    if not tensors:
        raise CheckpointError(f"{file}: holds no tensors")
    return tensors


_PROJECTION = re.compile(r"(?P<attn>.*\battn)\.(?P<letters>q|k|v|qk|kv|qkv)\.(?P<kind>weight|bias)")
_JOINED = ("qkv", "qk", "kv", "q", "k", "v")


@dataclass(frozen=True)
class Match:
    """What a source has for one tensor of a model.

    ``value``: in the shape asked for, or None. ``origins``: the tensors of the source that it is made of. ``note``:
    which parts these are, if parts; without a value why, if the source has something of that name.
    """

    value: Tensor | None = None
    origins: tuple[str, ...] = ()
    note: str = ""


def match(ours: Mapping[str, Tensor], source: Tensors) -> dict[str, Match]:
    """Return what ``source`` has for each tensor of ``ours``."""
    matches = {}
    for key, tensor in ours.items():
        found = Match(source[key], (key,)) if key in source else _letters(key, source)
        if found.value is not None and found.value.shape != tensor.shape:
            found = Match(note=f"{show(tensor)}; the source has {show(found.value)}")
        matches[key] = found
    return matches


@torch.no_grad()
def take_over(
    model: nn.Module, matches: Mapping[str, Match], where: str, source: Tensors, originals: Tensors
) -> Transfer:
    """Copy into ``model`` what was matched, and return what became of each tensor.

    Args:
        where: what to call the source.
        source: what the matches were found in.
        originals: the same before any was resized.
    """
    for key, tensor in model.state_dict().items():
        if (value := matches[key].value) is not None:
            tensor.copy_(value)
    found = {key: one for key, one in matches.items() if one.value is not None}
    copied = [key for key, one in found.items() if not one.note]
    in_part = {key: one.note for key, one in found.items() if one.note}
    initialised = {key: one.note for key, one in matches.items() if key not in found}
    resized = [key for key in copied if key in originals and originals[key].shape != source[key].shape]
    used = {origin for one in found.values() for origin in one.origins}
    unused = [key for key in source if key not in used and key not in initialised]
    return Transfer(where, copied, resized, in_part, initialised, unused)


def show(tensor: Tensor) -> str:
    """Return the shape of a tensor as text: ``192 × 3 × 16 × 16``."""
    return " × ".join(str(size) for size in tensor.shape)


def _letters(key: str, source: Tensors) -> Match:
    """Return queries, keys or values out of projections that join them otherwise."""
    wanted = _PROJECTION.fullmatch(key)
    if wanted is None:
        return Match()
    attn, letters, kind = wanted.groups()
    has: dict[str, tuple[str, Tensor]] = {}
    for joined in _JOINED:
        theirs = source.get(f"{attn}.{joined}.{kind}")
        if theirs is not None:
            has |= {letter: (joined, part) for letter, part in zip(joined, theirs.chunk(len(joined)), strict=False)}
    if missing := [letter for letter in letters if letter not in has]:
        return Match(note=f"the source has no {', '.join(missing)}" if has else "")
    modules = list(dict.fromkeys(has[letter][0] for letter in letters))
    value = torch.cat([has[letter][1] for letter in letters])
    note = f"{', '.join(letters)} of {' and '.join(f'attn.{joined}' for joined in modules)}"
    return Match(value, tuple(f"{attn}.{joined}.{kind}" for joined in modules), note)


_LAYER = re.compile(r"(?<=blocks\.)\d+")


@dataclass(frozen=True)
class Transfer:
    """What became of every tensor of a model that begins from ``source``, by name.

    ``resized``: of those copied, what was changed to fit. ``in_part``: the parts of the source's projections taken.
    ``initialised``: why, where the source has something of that name. ``unused``: tensors of the source.
    """

    source: str
    copied: list[str]
    resized: list[str]
    in_part: dict[str, str]
    initialised: dict[str, str]
    unused: list[str]

    def __str__(self) -> str:
        resized = f" (resized: {_families(dict.fromkeys(self.resized, ''))})" if self.resized else ""
        lines = [f"weights from {self.source}: {len(self.copied)} tensors copied{resized}"]
        if self.in_part:
            lines.append(f"{len(self.in_part)} in part: {'; '.join(self._parts())}")
        if self.initialised:
            lines.append(f"{len(self.initialised)} initialised: {_families(self.initialised)}")
        if self.unused:
            lines.append(f"{len(self.unused)} of the source not used: {_families(dict.fromkeys(self.unused, ''))}")
        return "\n  ".join(lines)

    def _parts(self) -> Iterator[str]:
        for part in dict.fromkeys(self.in_part.values()):
            layers = _layers(name for name, taken in self.in_part.items() if taken == part)
            yield f"{part} in {'layers' if len(layers) > 1 else 'layer'} {_ranges(layers)}"


def _families(notes: Mapping[str, str]) -> str:
    """Return module names with notes, layers of one kind as one (``blocks.0–5.attn.u``), without weights and biases."""
    modules: dict[str, str] = {}
    for name, note in notes.items():
        modules.setdefault(name.removesuffix(".weight").removesuffix(".bias"), note)
    families: dict[tuple[str, str], list[str]] = {}
    for module, note in modules.items():
        families.setdefault((_LAYER.sub("*", module, count=1), note), []).append(module)
    return ", ".join(
        family.replace("*", _ranges(_layers(members)), 1) + (f" ({note})" if note else "")
        for (family, note), members in families.items()
    )


def _layers(names: Iterable[str]) -> list[int]:
    return sorted({int(found.group()) for name in names if (found := _LAYER.search(name))})


def _ranges(numbers: Sequence[int]) -> str:
    """Return numbers as text: ``0–3, 5`` for 0, 1, 2, 3, 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
