"""From tensors of one model to another's, as far as that has a place for them.

A tensor goes to the tensor of the same name and shape. Where two mechanisms join their projections of queries, keys
and values otherwise (``attn.qkv`` here, ``attn.q`` and ``attn.kv`` there), each letter goes to its letter. What
else a mechanism has of its own stays as initialised.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from kattn_cli.models.transfer import Transfer
from kattn_cli.models.weights_file import Tensors

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
    """What ``source`` has for each tensor of ``ours``."""
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
    """Copy into ``model`` what was matched.

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
    """The shape of a tensor: ``192 × 3 × 16 × 16``."""
    return " × ".join(str(size) for size in tensor.shape)


def _letters(key: str, source: Tensors) -> Match:
    """Queries, keys or values out of projections that join them otherwise."""
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
