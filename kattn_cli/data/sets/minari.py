"""Data sets of Minari's that lie on disk, each a folder, read by Minari's own reader."""

from __future__ import annotations

from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from kattn_cli.data.dataset import FileCheck
from kattn_cli.data.reading.storage import default_root
from kattn_cli.data.sets.d4rl import Context, Scale
from kattn_cli.data.trajectories.trajectory_set import Recorded, TrajectoryFacts, TrajectorySet, recorded
from kattn_cli.environments.names import RETURN_SCALE
from kattn_cli.errors import DataError


def read_minari(folder: Path, environment: str | None) -> Recorded:
    """Return the whole episodes; ``environment``: None for the one that the data set was recorded in.

    An episode that neither ended nor ran out of time is left out wherever it stands.

    Raises:
        DataError: if Minari cannot read it, observations or actions are no rows of numbers, a number is not finite, or
            no episode is whole.
    """
    source = _opened(folder)
    columns: dict[str, list[np.ndarray]] = {"observations": [], "actions": [], "rewards": []}
    left_out = 0
    for number, episode in enumerate(_episodes(folder, source)):
        steps = len(episode.rewards)
        if not steps or not (episode.terminations[-1] or episode.truncations[-1]):
            left_out += steps
            continue
        if len(episode.observations) != steps + 1 or len(episode.actions) != steps:
            raise DataError(
                f"{folder}: episode {number}: has {len(episode.observations)} observations and {len(episode.actions)} "
                f"actions; expected {steps + 1} and {steps}, for its {steps} rewards"
            )
        columns["observations"].append(episode.observations[:-1])
        columns["actions"].append(episode.actions)
        columns["rewards"].append(episode.rewards)
    lengths = [len(rewards) for rewards in columns["rewards"]]
    if not lengths:
        raise DataError(f"{folder}: holds no whole episode: none of its {left_out:,} steps ends one")
    arrays = {name: np.concatenate(parts) for name, parts in columns.items()}
    name = environment or _environment(folder, source)
    done = recorded(folder, name, arrays, np.cumsum(lengths) - 1, (source.action_space.low, source.action_space.high))
    return Recorded(**{**done.__dict__, "left_out": left_out})


def widths_of_minari(folder: Path) -> tuple[int, int]:
    """Return the widths of an observation and of an action; no step is read.

    Raises:
        DataError: as :func:`read_minari`, for what can be seen without reading.
    """
    source = _opened(folder)
    return int(source.observation_space.shape[0]), int(source.action_space.shape[0])


def _opened(folder: Path) -> Any:
    import minari
    from gymnasium.spaces import Box

    try:
        source = minari.MinariDataset(folder / "data" if (folder / "data").is_dir() else folder)
    except Exception as error:  # whatever its reader, its storage and its environment's registration raise
        raise DataError(f"{folder}: Minari cannot read it: {' '.join(str(error).split())}") from None
    for what, space in (("observations", source.observation_space), ("actions", source.action_space)):
        if not isinstance(space, Box) or len(space.shape) != 1:
            raise DataError(f"{folder}: its {what} are {space}; expected a Box of one axis")
    return source


def _episodes(folder: Path, source: Any) -> Any:
    try:
        yield from source.iterate_episodes()
    except Exception as error:  # Minari's, HDF5's and NumPy's
        raise DataError(f"{folder}: Minari cannot read it: {' '.join(str(error).split())}") from None


def _environment(folder: Path, source: Any) -> str:
    if source.env_spec is None:
        raise DataError(f"data.environment: {folder} does not say which environment it is of; give it, such as hopper")
    return str(source.env_spec.id)


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
