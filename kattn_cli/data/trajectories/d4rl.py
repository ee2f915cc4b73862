"""Data sets in D4RL's layout: D4RL's own, and those that ``kattn data collect`` records."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.roots import default_root
from kattn_cli.data.trajectories.d4rl_file import read_d4rl, widths
from kattn_cli.data.trajectories.recorded import Recorded
from kattn_cli.data.trajectories.trajectory_set import TrajectoryFacts, TrajectorySet
from kattn_cli.environments.names import RETURN_SCALE, short_name
from kattn_cli.errors import DataError

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
        """The file, where it is or is looked for first."""
        if self.path:
            return self.path
        candidates = self._candidates()
        return next((path for path in candidates if path.is_file()), candidates[0])

    def _candidates(self) -> list[Path]:
        stem = short_name(self.environment or "").lower().replace("/", "-")
        return [self.root / f"{stem}_{self.level}{version}.hdf5" for version in ("-v2", "")]
