"""Data sets of trajectories, and the recorded episodes that they hold.

An episode ends where the environment ended it (a terminal) or where its time was up (a timeout). The steps after the
last end belong to an episode whose return nobody knows: they are left out, and counted.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import ClassVar

import numpy as np

from kattn_cli.data.dataset import DataSet
from kattn_cli.data.trajectories.steps import returns_of
from kattn_cli.environments.names import normalised_score
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import TrajectorySection

_ROUNDING = 1e-4


@dataclass(frozen=True)
class Recorded:
    """``T`` steps of ``E`` whole episodes, one after the other.

    ``observations`` ``(T, S)``, ``actions`` ``(T, A)``, ``rewards`` ``(T,)``: float32. ``ends``: ``(E,)`` int64, the
    index of each episode's last step. ``low``, ``high``: ``(A,)``, the bounds of an action. ``left_out``: the steps of
    an unfinished last episode.
    """

    where: Path
    environment: str
    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    ends: np.ndarray
    low: np.ndarray
    high: np.ndarray
    left_out: int

    @property
    def returns(self) -> np.ndarray:
        """The sum of rewards of each episode, float64 ``(E,)``."""
        return returns_of(self.rewards, self.ends)

    def summary(self) -> str:
        """Return episodes, steps and returns, in words."""
        returns = self.returns
        mean = float(returns.mean())
        score = normalised_score(self.environment, mean)
        widths = f"states of {self.observations.shape[1]} numbers, actions of {self.actions.shape[1]}"
        parts = [
            f"{self.environment}, {len(returns):,} episodes, {len(self.rewards):,} steps; {widths}",
            f"mean return {mean:,.1f} ({returns.min():,.1f} to {returns.max():,.1f})",
            *([] if score is None else [f"normalised score {score:.1f}"]),
            *([f"{self.left_out:,} steps of an unfinished last episode left out"] if self.left_out else []),
        ]
        return "; ".join(parts)


def recorded(
    where: Path,
    environment: str,
    arrays: dict[str, np.ndarray],
    ends: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray] | None,
) -> Recorded:
    """Return whole episodes of ``observations``, ``actions``, ``rewards``; ``bounds`` default to those of the actions.

    Raises:
        DataError: if a number is not finite, an action is out of its bounds, or no episode is whole.
    """
    for name, array in arrays.items():
        _refuse_unless_finite(where, name, array)
    if not len(ends):
        raise DataError(f"{where}: holds no whole episode: none of its {len(arrays['rewards']):,} steps ends one")
    count = int(ends[-1]) + 1
    left_out = len(arrays["rewards"]) - count
    observations, actions, rewards = (
        np.ascontiguousarray(arrays[name][:count], dtype=np.float32) for name in ("observations", "actions", "rewards")
    )
    low, high = bounds or (actions.min(0), actions.max(0))
    _refuse_out_of_bounds(where, actions, low, high)
    return Recorded(where, environment, observations, actions, rewards, ends.astype(np.int64), low, high, left_out)


def _refuse_unless_finite(where: Path, name: str, array: np.ndarray) -> None:
    finite = np.isfinite(array)
    if not finite.all():
        bad = np.flatnonzero(~finite.reshape(len(array), -1).all(1))
        count = f"{len(bad):,} of {len(array):,} steps are not finite numbers"
        raise DataError(f"{where}: {name}: {count}, the first is step {bad[0]:,}")


def _refuse_out_of_bounds(where: Path, actions: np.ndarray, low: np.ndarray, high: np.ndarray) -> None:
    for bound in (low, high):
        if bound.shape != actions.shape[1:]:
            raise DataError(
                f"{where}: actions: have {actions.shape[1]} dimensions, and the environment's bounds {len(bound)}"
            )
    slack = _ROUNDING * (high - low)
    outside = np.flatnonzero(((actions < low - slack) | (actions > high + slack)).any(1))
    if len(outside):
        raise DataError(
            f"{where}: actions: {len(outside):,} of {len(actions):,} are out of the environment's bounds, "
            f"the first is step {outside[0]:,}"
        )


@dataclass(frozen=True)
class TrajectoryFacts:
    """The numbers of a state and of an action, and the steps of a window."""

    states: int
    actions: int
    context: int


class TrajectorySet(DataSet):
    """A data set of trajectories.

    ``environment``: what was acted in, where an option says; ``context``: how many steps a model sees at most;
    ``return_scale``: what it divides returns by.
    """

    name: ClassVar[str]
    needs: ClassVar[str]
    """The package that reads it."""
    reads = "trajectories"
    section = TrajectorySection
    environment: str | None
    context: int
    return_scale: float

    @abstractmethod
    def facts(self) -> TrajectoryFacts:
        """Return the widths, without reading a step.

        Raises:
            DataError: if that needs files which are not there or damaged.
        """

    @abstractmethod
    def load(self) -> Recorded:
        """Load every whole episode.

        Raises:
            DataError: if a file is missing, damaged, or not of this kind, in one line that says where.
        """

    def lacking(self) -> str:
        """Return an empty string if the package that reads it is installed; else one line."""
        if find_spec(self.needs) is None:
            needed = f"{self.name} is read by {self.needs}"
            return f"data.name: {needed}, which is not installed: pip install 'kattn[control]'"
        return ""

    def require(self) -> None:
        """Raise what :meth:`missing` reports.

        Raises:
            DataError: if it reports anything.
        """
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing.removeprefix('data.')}")

    def fetch(self) -> None:
        """See :class:`~kattn_cli.data.dataset.DataSet`: there is nothing to fetch it from."""
        raise DataError(f"{self.name}: cannot be fetched; {self.how_to_get}")
