"""Data sets of Minari's that lie on disk."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.roots import default_root
from kattn_cli.data.trajectories.d4rl import Context, Scale
from kattn_cli.data.trajectories.minari_folder import read_minari, widths_of_minari
from kattn_cli.data.trajectories.recorded import Recorded
from kattn_cli.data.trajectories.trajectory_set import TrajectoryFacts, TrajectorySet
from kattn_cli.environments.names import RETURN_SCALE
from kattn_cli.errors import DataError


class Minari(TrajectorySet):
    """One data set, read by the package minari, with observations and actions that are rows of numbers.

    Args:
        root: its folder, such as ``~/.minari/datasets/mujoco/hopper/medium-v0``; by default ``$KATTN_DATA/minari`` or
            ``~/.cache/kattn/minari``.
        environment: hopper, halfcheetah, walker2d, or an id of gymnasium's; by default the one that it was recorded in.
        context: steps of a window.
        return_scale: what a model divides returns by.
    """

    name: ClassVar[str] = "minari"
    needs = "minari"
    description = "trajectories of a policy, as Minari keeps them"
    how_to_get = "minari download mujoco/hopper/medium-v0 gets one; give its folder below ~/.minari/datasets as root"

    def __init__(
        self,
        *,
        root: str | None = None,
        environment: str | None = None,
        context: Context = 20,
        return_scale: Scale = RETURN_SCALE,
    ) -> None:
        self.root = Path(root).expanduser() if root else default_root(self.name)
        self.environment, self.context, self.return_scale = environment, context, return_scale

    def facts(self) -> TrajectoryFacts:
        """See :class:`~kattn_cli.data.trajectories.trajectory_set.TrajectorySet`."""
        self.require()
        return TrajectoryFacts(*widths_of_minari(self.root), self.context)

    def places(self) -> list[Path]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        return [self.root]

    def missing(self) -> str:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        if lacking := self.lacking():
            return lacking
        if any(path.is_file() for path in self._candidates()):
            return ""
        return f"there is no {' or '.join(map(str, self._candidates()))}; {self.how_to_get}"

    def files(self) -> list[FileCheck]:
        """See :class:`~kattn_cli.data.dataset.DataSet`."""
        path = next((path for path in self._candidates() if path.is_file()), self._candidates()[0])
        if not path.is_file():
            return [FileCheck(path, "missing")]
        if self.lacking():
            return [FileCheck(path, "no checksum known")]
        try:
            states, actions = widths_of_minari(self.root)
        except DataError as error:
            return [FileCheck(path, "wrong checksum", str(error).removeprefix(f"{self.root}: "))]
        return [FileCheck(path, "no checksum known", f"states of {states} numbers, actions of {actions}")]

    def load(self) -> Recorded:
        """See :class:`~kattn_cli.data.trajectories.trajectory_set.TrajectorySet`."""
        self.require()
        return read_minari(self.root, self.environment)

    def _candidates(self) -> list[Path]:
        return [self.root / "data" / "metadata.json", self.root / "metadata.json"]
