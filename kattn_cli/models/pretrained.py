"""Pretrained weights of timm's vision transformers, as far as the attention at hand has a place for them.

timm loads them into its own model with softmax attention, where it resizes the position code and sums the first
convolution over channels as needed. From there a tensor goes to the tensor of the same name and shape. A
mechanism whose projection is some of the letters q, k, v (``attn.kv``, say) takes these parts of ``attn.qkv``;
what else a mechanism has of its own stays as initialised.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import timm
import torch
from torch import Tensor

from kattn_cli.errors import CheckpointError
from kattn_cli.models import Classifier

TIMM = "timm"
FILE_TYPES = (".safetensors", ".pth", ".pt")

Tensors = dict[str, Tensor]

_PROJECTION = re.compile(r"(?P<attn>.*\.attn)\.(?P<letters>q|k|v|qk|kv)\.(?P<kind>weight|bias)")
_BLOCK = re.compile(r"(?<=blocks\.)\d+")


@dataclass(frozen=True)
class Transfer:
    """What became of every tensor of a model that begins from ``source``, by name.

    ``resized``: of those copied, what timm changed to fit. ``in_part``: the letters taken from ``attn.qkv``.
    ``initialised``: why, where the source has that name in another shape. ``unused``: tensors of the source.
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
        for letters in dict.fromkeys(self.in_part.values()):
            names = [name for name, taken in self.in_part.items() if taken == letters]
            layers = sorted({int(layer) for name in names for layer in _BLOCK.findall(name)})
            yield f"{', '.join(letters)} of attn.qkv in {'layers' if len(layers) > 1 else 'layer'} {_ranges(layers)}"


@torch.no_grad()
def load_pretrained(model: Classifier, name: str, weights: str) -> Transfer:
    """Begin ``model``, whose backbone is timm's ``name`` with any mechanisms, from ``weights``.

    Args:
        weights: ``timm`` for timm's own, which it fetches, or a file in timm's naming.

    Raises:
        CheckpointError: if they cannot be read, or are those of another architecture.
    """
    state = _fetch(name) if weights == TIMM else _read(weights)
    source = _fitted(model.backbone, name, weights, state)
    copied: list[str] = []
    in_part: dict[str, str] = {}
    initialised: dict[str, str] = {}
    used: set[str] = set()
    for key, ours in model.backbone.state_dict().items():
        origin, letters = _origin(key, source)
        theirs = source.get(origin)
        if theirs is not None and letters:
            theirs = torch.cat([theirs.chunk(3)["qkv".index(letter)] for letter in letters])
        if theirs is None or theirs.shape != ours.shape:
            initialised[key] = "" if theirs is None else f"{_show(ours)}; the source has {_show(theirs)}"
            continue
        ours.copy_(theirs)
        used.add(origin)
        if letters:
            in_part[key] = letters
        else:
            copied.append(key)
    where = f"timm ({name})" if weights == TIMM else weights
    resized = [key for key in copied if key in state and state[key].shape != source[key].shape]
    unused = [key for key in source if key not in used and key not in initialised]
    return Transfer(where, copied, resized, in_part, initialised, unused)


def _origin(key: str, source: Tensors) -> tuple[str, str]:
    """The tensor of ``source`` that ``key`` comes from, and the letters of q, k, v if it is a part of it."""
    match = _PROJECTION.fullmatch(key)
    if match is None or key in source:
        return key, ""
    return f"{match['attn']}.qkv.{match['kind']}", match["letters"]


def _fetch(name: str) -> Tensors:
    try:
        return dict(timm.create_model(name, pretrained=True).state_dict())
    except Exception as error:
        raise CheckpointError(f"timm's weights of {name} cannot be fetched: {_one_line(error)}") from None


def _read(file: str) -> Tensors:
    if not Path(file).is_file():
        raise CheckpointError(f"{file}: there is no such file")
    try:
        state = timm.models.load_state_dict(file, weights_only=True)
    except Exception as error:
        why = "it is cut short, damaged, or not a file of tensors"
        raise CheckpointError(f"{file}: cannot be read ({type(error).__name__}); {why}") from None
    tensors = {key: value for key, value in state.items() if isinstance(value, Tensor)}
    if not tensors:
        raise CheckpointError(f"{file}: holds no tensors")
    return tensors


def _fitted(backbone: Any, name: str, weights: str, state: Tensors) -> Tensors:
    """The weights as timm's own model of ``backbone``'s sizes holds them, with a head of the weights' own classes."""
    stem, head = state.get("patch_embed.proj.weight"), state.get("head.weight")
    channels = stem.shape[1] if stem is not None and stem.ndim == 4 else 3
    classes = 0 if head is None else len(head)
    size = backbone.patch_embed.img_size
    overlay = {"state_dict": state, "num_classes": classes, "input_size": (channels, *size)}
    sizes = {"img_size": size, "in_chans": backbone.patch_embed.proj.in_channels, "num_classes": classes}
    try:
        source = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, **sizes)
    except Exception as error:
        if state.keys() & backbone.state_dict().keys():
            reason = f"is of another architecture than {name}: {_one_line(error)}"
        else:
            reason = f"is not in timm's naming: its first tensor is {next(iter(state))}"
        raise CheckpointError(f"{weights}: {reason}") from None
    return dict(source.state_dict())


def _one_line(error: Exception) -> str:
    """What an error says first; of PyTorch's list of faults, without its heading."""
    lines = str(error).splitlines()
    told = lines[1:] if len(lines) > 1 and lines[0].endswith(":") else lines
    return textwrap.shorten(" ".join(told) or type(error).__name__, 200, placeholder=" …")


def _show(tensor: Tensor) -> str:
    return " × ".join(str(size) for size in tensor.shape)


def _families(notes: Mapping[str, str]) -> str:
    """Modules instead of their weights and biases, one for all layers (``blocks.*.attn.u``), with their notes."""
    families: dict[str, dict[str, str]] = {}
    for name, note in notes.items():
        module = name.removesuffix(".weight").removesuffix(".bias")
        families.setdefault(_BLOCK.sub("*", module), {}).setdefault(module, note)
    shown = {family if len(modules) > 1 else next(iter(modules)): modules for family, modules in families.items()}
    return ", ".join(_noted(name, next(iter(modules.values()))) for name, modules in shown.items())


def _noted(name: str, note: str) -> str:
    return f"{name} ({note})" if note else name


def _ranges(numbers: Sequence[int]) -> str:
    """``0–3, 5`` for 0, 1, 2, 3, 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
