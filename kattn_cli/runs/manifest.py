"""What a run's manifest must say, and of which kind it is. Never imports torch."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NEEDED: Mapping[str, type] = {"name": str, "seed": int, "status": str}
"""Without these nobody knows which run it is."""
LISTS: Mapping[str, type] = {"overrides": str, "corrupt_images": str, "measurements": dict, "resumptions": dict}
"""Keys that hold lists, and what is in them."""
TEXTS = ("mechanism", "command", "commit", "device", "start", "end", "chosen_on", "chosen_by", "reads", "host")
NUMBERS = (
    *("parameters", "train_seconds", "best_epoch", "peak_memory_mib", "dropped_by_experts", "pid"),
    "forward_flops_per_sample",
)
MAPPINGS = ("machine", "versions", "weights")
"""Keys that may be missing or null, here and above."""
_SEVERAL: Mapping[type, str] = {str: "texts", dict: "mappings"}


def read_manifest(path: Path) -> dict[str, Any]:
    """Return a manifest as it stands on disk.

    Raises:
        OSError, ValueError: if it cannot be read, is not JSON, or says something of another kind than it should.
    """
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    have = manifest if isinstance(manifest, dict) else {}
    if missing := [key for key, kind in NEEDED.items() if not isinstance(have.get(key), kind)]:
        raise ValueError(f"it has no {' and no '.join(missing)}")
    if fault := next(_faults(have), None):
        raise ValueError(fault)
    return have


def _faults(manifest: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """Yield what is of another kind than it should be, also in the records of measurements and resumptions."""
    for key, kind in LISTS.items():
        value = manifest.get(key, [])
        if not isinstance(value, list) or not all(isinstance(one, kind) for one in value):
            yield f"{where}{key} is no list of {_SEVERAL[kind]}"
        elif kind is dict:
            for number, record in enumerate(value, 1):
                yield from _faults(record, f"{key} {number}: ")
    for key, value in manifest.items():
        number = key in NUMBERS or key.startswith("best_validation_")
        if value is None:
            continue
        if key in TEXTS and not isinstance(value, str):
            yield f"{where}{key} is no text"
        elif number and (isinstance(value, bool) or not isinstance(value, int | float)):
            yield f"{where}{key} is no number"
        elif key in MAPPINGS and not isinstance(value, dict):
            yield f"{where}{key} is no mapping"
