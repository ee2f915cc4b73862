"""One file of D4RL's: every array of a data set, over all its steps (Fu et al. 2020, arXiv:2004.07219)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from kattn_cli.data.trajectories.recorded import Recorded, recorded
from kattn_cli.environments.names import ENVIRONMENTS, short_name
from kattn_cli.errors import DataError, did_you_mean

WANTED = ("observations", "actions", "rewards", "terminals")
LIMIT = 1000
"""Steps after which an episode of D4RL's is over, where its file has no timeouts."""


def read_d4rl(path: Path, environment: str | None) -> Recorded:
    """The whole episodes of a file; ``environment``: None for the one that the file names.

    Raises:
        DataError: if it is no HDF5 file, lacks an array, has one of another shape or with numbers that are not
            finite, holds no whole episode, or if nothing says which environment it is of.
    """
    with _opened(path) as file:
        _check_shapes(path, file)
        arrays = {name: file[name][:] for name in ("observations", "actions", "rewards")}
        arrays["rewards"] = arrays["rewards"].reshape(-1)
        terminals = file["terminals"][:].reshape(-1).astype(bool)
        timeouts = file["timeouts"][:].reshape(-1).astype(bool) if "timeouts" in file else None
        name = environment or _environment(path, file)
        bounds = _bounds(file, name)
    ended = _timed_out(terminals) if timeouts is None else terminals | timeouts
    return recorded(path, name, arrays, np.flatnonzero(ended), bounds)


def widths(path: Path) -> tuple[int, int]:
    """Of an observation and of an action; no step is read.

    Raises:
        DataError: as :func:`read_d4rl`, for what can be seen without reading.
    """
    with _opened(path) as file:
        _check_shapes(path, file)
        return int(file["observations"].shape[1]), int(file["actions"].shape[1])


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    """The file; what is wrong with it while it is read is told in one line, too."""
    import h5py

    try:
        with h5py.File(path) as file:
            yield file
    except OSError as error:
        raise DataError(f"{path}: cannot be read as HDF5: {' '.join(str(error).split())}") from None


def _check_shapes(path: Path, file: Any) -> None:
    import h5py

    there = [name for name in file if isinstance(file[name], h5py.Dataset)]
    if missing := [name for name in WANTED if name not in there]:
        others = [name for name in there if name not in WANTED]
        hints = "".join(did_you_mean(name, others) for name in missing)
        raise DataError(f"{path}: has no {' and no '.join(missing)}, but {', '.join(there) or 'nothing'}{hints}")
    steps = len(file["observations"]) if file["observations"].ndim else 0
    for name in (*WANTED, *(["timeouts"] if "timeouts" in there else [])):
        array = file[name]
        if array.dtype.kind not in "fiub":
            raise DataError(f"{path}: {name}: holds {array.dtype}, expected numbers")
        wide = name in ("observations", "actions")
        if not _fits(array.shape, wide):
            expected = f"(steps, {name})" if wide else "(steps,)"
            raise DataError(f"{path}: {name}: has shape {array.shape}, expected {expected}")
        if len(array) != steps:
            raise DataError(f"{path}: {name}: has {len(array):,} steps, and observations {steps:,}")


def _fits(shape: tuple[int, ...], wide: bool) -> bool:
    return (len(shape) == 2 and shape[1] > 0) if wide else (len(shape) == 1 or shape[1:] == (1,))


def _environment(path: Path, file: Any) -> str:
    """By the file's attribute, or by its name."""
    if "environment" in file.attrs:
        return str(file.attrs["environment"])
    if (name := short_name(path.stem)) in ENVIRONMENTS:
        return name
    unknown = f"neither an attribute nor the name of {path} says which environment it is of"
    raise DataError(f"data.environment: {unknown}; give it, such as hopper")


def _bounds(file: Any, environment: str) -> tuple[np.ndarray, np.ndarray] | None:
    """By the file's attributes; ±1 for the environments of D4RL; None where nothing is known."""
    if "action_low" in file.attrs and "action_high" in file.attrs:
        low, high = (np.array(json.loads(file.attrs[name]), np.float32) for name in ("action_low", "action_high"))
        return low, high
    if short_name(environment) in ENVIRONMENTS:
        width = file["actions"].shape[1]
        return -np.ones(width, np.float32), np.ones(width, np.float32)
    return None


def _timed_out(terminals: np.ndarray) -> np.ndarray:
    """Where episodes end if none has more than :data:`LIMIT` steps."""
    ends = np.flatnonzero(terminals)
    starts = np.concatenate([[0], ends + 1])
    lengths = np.diff(np.append(starts, len(terminals)))
    place = np.arange(len(terminals)) - np.repeat(starts, lengths)
    return terminals | (place % LIMIT == LIMIT - 1)
