"""Data sets in D4RL's layout: D4RL's own, and those that ``kattn data collect`` records.

A file holds every array of a data set, over all its steps (Fu et al. 2020, arXiv:2004.07219).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
from pydantic import Field

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.reading.hdf5 import Hdf5, opened
from kattn_cli.data.reading.storage import default_root
from kattn_cli.data.trajectories.trajectory_set import Recorded, TrajectoryFacts, TrajectorySet, recorded
from kattn_cli.environments.names import ENVIRONMENTS, RETURN_SCALE, short_name
from kattn_cli.errors import DataError, did_you_mean

WANTED = ("observations", "actions", "rewards", "terminals")
LIMIT = 1000
"""Steps after which an episode of D4RL's is over, where its file has no timeouts."""


def read_d4rl(path: Path, environment: str | None) -> Recorded:
    """Return the whole episodes of a file; ``environment``: None for the one that the file names.

    Raises:
        DataError: if it is no HDF5 file, lacks an array, has one of another shape or with numbers that are not
            finite, holds no whole episode, or if nothing says which environment it is of.
    """
    with opened(path) as file:
        _check_shapes(file)
        arrays = {name: file.array(name) for name in ("observations", "actions", "rewards")}
        arrays["rewards"] = arrays["rewards"].reshape(-1)
        terminals = file.array("terminals").reshape(-1).astype(bool)
        timeouts = file.array("timeouts").reshape(-1).astype(bool) if "timeouts" in file.names() else None
        attributes = file.attributes()
    name = environment or _environment(path, attributes)
    bounds = _bounds(path, attributes, name, arrays["actions"].shape[1])
    ended = _timed_out(terminals) if timeouts is None else terminals | timeouts
    return recorded(path, name, arrays, np.flatnonzero(ended), bounds)


def widths(path: Path) -> tuple[int, int]:
    """Return the widths of an observation and of an action; no step is read.

    Raises:
        DataError: as :func:`read_d4rl`, for what can be seen without reading.
    """
    with opened(path) as file:
        _check_shapes(file)
        return file.shape("observations")[1], file.shape("actions")[1]


def _check_shapes(file: Hdf5) -> None:
    path, there = file.path, file.names()
    if missing := [name for name in WANTED if name not in there]:
        others = [name for name in there if name not in WANTED]
        hints = "".join(did_you_mean(name, others) for name in missing)
        raise DataError(f"{path}: has no {' and no '.join(missing)}, but {', '.join(there) or 'nothing'}{hints}")
    shapes = {name: file.shape(name) for name in (*WANTED, *(["timeouts"] if "timeouts" in there else []))}
    for name, shape in shapes.items():
        wide = name in ("observations", "actions")
        if not _fits(shape, wide):
            expected = f"(steps, {name})" if wide else "(steps,)"
            raise DataError(f"{path}: {name}: has shape {shape}, expected {expected}")
        if shape[0] != (steps := shapes["observations"][0]):
            raise DataError(f"{path}: {name}: has {shape[0]:,} steps, and observations {steps:,}")


def _fits(shape: tuple[int, ...], wide: bool) -> bool:
    return (len(shape) == 2 and shape[1] > 0) if wide else (len(shape) == 1 or shape[1:] == (1,))


def _environment(path: Path, attributes: Mapping[str, Any]) -> str:
    """Return the environment by the file's attribute, or by its name."""
    if "environment" in attributes:
        return str(attributes["environment"])
    if (name := short_name(path.stem)) in ENVIRONMENTS:
        return name
    unknown = f"neither an attribute nor the name of {path} says which environment it is of"
    raise DataError(f"data.environment: {unknown}; give it, such as hopper")


def _bounds(
    path: Path, attributes: Mapping[str, Any], environment: str, width: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the bounds by the file's attributes; ±1 for D4RL's environments; None where nothing is known."""
    names = ("action_low", "action_high")
    if all(name in attributes for name in names):
        low, high = (_bound(path, name, attributes[name]) for name in names)
        return low, high
    if short_name(environment) in ENVIRONMENTS:
        return -np.ones(width, np.float32), np.ones(width, np.float32)
    return None


def _bound(path: Path, name: str, text: Any) -> np.ndarray:
    try:
        bound: np.ndarray = np.array(json.loads(text), np.float32)
    except (ValueError, TypeError, RecursionError):
        bound = np.array(0, np.float32)
    if bound.ndim != 1:
        raise DataError(f"{path}: {name}: expected a list of numbers as JSON, not {str(text)[:40]}")
    return bound


def _timed_out(terminals: np.ndarray) -> np.ndarray:
    """Return where episodes end if none has more than :data:`LIMIT` steps."""
    ends = np.flatnonzero(terminals)
    starts = np.concatenate([[0], ends + 1])
    lengths = np.diff(np.append(starts, len(terminals)))
    place = np.arange(len(terminals)) - np.repeat(starts, lengths)
    return terminals | (place % LIMIT == LIMIT - 1)


Level = Literal["random", "medium", "medium_replay", "medium_expert", "expert", "full_replay"]
Context = Annotated[int, Field(ge=1, le=4096)]
Scale = Annotated[float, Field(gt=0)]


class D4rl(TrajectorySet):
    """One HDF5 file: by its path, or by environment and level in a folder.

    Args:
        path: the file.
        root: the folder of ``<environment>_<level>-v2.hdf5``, as D4RL calls it, or ``<environment>_<level>.hdf5``; by
            default ``$KATTN_DATA/d4rl`` or ``~/.cache/kattn/d4rl``.
        environment: hopper, halfcheetah, walker2d, or an id of gymnasium's; with ``path`` by default the one that the
            file's attribute or its name says.
        level: which of the environment's files; not with ``path``.
        context: steps of a window.
        return_scale: what a model divides returns by.
    """

    name: ClassVar[str] = "d4rl"
    needs = "h5py"
    description = "trajectories of a policy, in D4RL's layout"
    how_to_get = (
        "kattn data collect hopper (or corridor) records some in data/control; or download hopper_medium-v2.hdf5 of "
        "http://rail.eecs.berkeley.edu/datasets/offline_rl/gym_mujoco_v2 and give its folder as root"
    )
    path_options = ("root", "path")

    def __init__(
        self,
        *,
        path: str | None = None,
        root: str | None = None,
        environment: str | None = None,
        level: Level | None = None,
        context: Context = 20,
        return_scale: Scale = RETURN_SCALE,
    ) -> None:
        if path and (root or level):
            raise ValueError(f"data.path: names the file; leave out {'root' if root else 'level'}")
        self.path = Path(path).expanduser() if path else None
        self.root = Path(root).expanduser() if root else default_root(self.name)
        self.environment, self.level = environment, level or "medium"
        self.context, self.return_scale = context, return_scale

    def facts(self) -> TrajectoryFacts:
        """See :class:`~kattn_cli.data.trajectories.trajectory_set.TrajectorySet`."""
        self.require()
        return TrajectoryFacts(*widths(self._file()), self.context)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.path or self.root]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if lacking := self.lacking():
            return lacking
        if self.path:
            return "" if self.path.is_file() else f"data.path: there is no file {self.path}; {self.how_to_get}"
        if self.environment is None:
            return "data.environment: is missing; give hopper, halfcheetah or walker2d, or the path of a file"
        if self._file().is_file():
            return ""
        names = " or ".join(path.name for path in self._candidates())
        return f"there is no {names} in {self.root}; {self.how_to_get}"

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`; of a sum, which nobody publishes, its content instead."""
        if self.path is None and self.environment is None:
            return []
        path = self._file()
        if not path.is_file():
            return [FileCheck(path, "missing")]
        if self.lacking():
            return [FileCheck(path, "no checksum known")]
        try:
            states, actions = widths(path)
        except DataError as error:
            return [FileCheck(path, "wrong checksum", str(error).removeprefix(f"{path}: "))]
        return [FileCheck(path, "no checksum known", f"states of {states} numbers, actions of {actions}")]

    def load(self) -> Recorded:
        """See :class:`~kattn_cli.data.trajectories.trajectory_set.TrajectorySet`."""
        self.require()
        return read_d4rl(self._file(), self.environment)

    def _file(self) -> Path:
        """Return the file, where it is or is looked for first."""
        if self.path:
            return self.path
        candidates = self._candidates()
        return next((path for path in candidates if path.is_file()), candidates[0])

    def _candidates(self) -> list[Path]:
        stem = short_name(self.environment or "").lower().replace("/", "-")
        return [self.root / f"{stem}_{self.level}{version}.hdf5" for version in ("-v2", "")]
