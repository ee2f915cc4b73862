"""Small files in D4RL's layout."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

LENGTHS = (3, 5, 1, 4, 6)
"""Of the whole episodes; two steps of another follow."""


def arrays(lengths: tuple[int, ...] = LENGTHS, left: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Every second episode ends by a timeout, the others by a terminal; ``left`` steps of an unfinished one follow."""
    draw = np.random.default_rng(seed)
    steps = sum(lengths) + left
    ends = np.cumsum(lengths) - 1
    terminals, timeouts = np.zeros(steps, bool), np.zeros(steps, bool)
    terminals[ends[::2]], timeouts[ends[1::2]] = True, True
    return {
        "observations": draw.normal(size=(steps, 4)).astype(np.float32),
        "actions": draw.uniform(-1, 1, size=(steps, 2)).astype(np.float32),
        "rewards": draw.normal(size=steps).astype(np.float32),
        "terminals": terminals,
        "timeouts": timeouts,
    }


def write(path: Path, arrays: dict[str, np.ndarray], **attributes: Any) -> Path:
    """A file with these arrays."""
    import h5py

    with h5py.File(path, "w") as file:
        for name, array in arrays.items():
            file[name] = array
        file.attrs.update(attributes)
    return path
