"""What became of the tensors of a model that begins from others', and how that is told."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

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
    """Modules instead of their weights and biases, one for several layers (``blocks.0–5.attn.u``), with their notes."""
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
    """``0–3, 5`` for 0, 1, 2, 3, 5."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][-1] + 1:
            runs[-1].append(number)
        else:
            runs.append([number])
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]}–{run[-1]}" for run in runs)
