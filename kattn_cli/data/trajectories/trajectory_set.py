"""What a data set of trajectories says of itself, and how it is loaded."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

import numpy as np
import torch

from kattn_cli.data.dataset import DataSet
from kattn_cli.data.holdout import hold_out
from kattn_cli.data.trajectories.recorded import Recorded
from kattn_cli.data.trajectories.windows import TrajectoryData, TrajectorySplit
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import DataSection, TrajectorySection

HELD_OUT = 0.05
"""The share of the episodes to choose the best epoch by, unless a recipe says."""
_SMALL = 1e-6


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
    section = TrajectorySection
    environment: str | None
    context: int
    return_scale: float

    @abstractmethod
    def facts(self) -> TrajectoryFacts:
        """Widths, without reading a step.

        Raises:
            DataError: if that needs files which are not there or damaged.
        """

    @abstractmethod
    def load(self) -> Recorded:
        """Every whole episode.

        Raises:
            DataError: if a file is missing, damaged, or not of this kind, in one line that says where.
        """

    def lacking(self) -> str:
        """Empty if the package that reads it is installed; else one line."""
        if find_spec(self.needs) is None:
            needed = f"{self.name} is read by {self.needs}"
            return f"data.name: {needed}, which is not installed: pip install 'kattn[control]'"
        return ""

    def require(self) -> None:
        """Raise what :meth:`missing` says.

        Raises:
            DataError: if it says anything.
        """
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing.removeprefix('data.')}")

    def fetch(self) -> None:
        """See :class:`~kattn_cli.data.dataset.DataSet`: there is nothing to fetch it from."""
        raise DataError(f"{self.name}: cannot be fetched; {self.how_to_get}")


def load_trajectories(source: TrajectorySet, data: DataSection) -> TrajectoryData:
    """The episodes as windows: to train on, and to choose the best epoch by.

    Of the episodes, ``data.validation`` (by default 0.05) are held out: whole ones, evenly spread over the data set's
    order by the rule of :mod:`kattn_cli.data.holdout`, which no seed has a say in. What a policy is worth is measured
    in its environment, not on recorded steps; the split ``test`` is therefore the validation split.

    Raises:
        DataError: if the data set cannot be loaded, has a single episode, or ``data`` asks for what has no meaning.
    """
    if data.choose_on == "test":
        raise DataError("data.choose_on: trajectories have no test split; the test is acting, which kattn eval does")
    if data.classes:
        raise DataError(f"data.classes: {source.name} holds trajectories, which have none; leave this out")
    found = source.load()
    kept, held_out = hold_out(torch.zeros(len(found.ends), dtype=torch.int64), data.validation or HELD_OUT)
    if len(held_out) == 0:
        raise DataError(f"{found.where}: has one whole episode, and none can be held out to choose the best epoch by")
    train, validation = _split(found, kept.numpy(), source.context), _split(found, held_out.numpy(), source.context)
    returns = found.returns[kept.numpy()]
    states = train.states.double()
    return TrajectoryData(
        name=source.name,
        environment=found.environment,
        states=found.observations.shape[1],
        actions=found.actions.shape[1],
        context=source.context,
        longest=int(np.diff(found.ends, prepend=-1).max()),
        mean=tuple(states.mean(0).tolist()),
        std=tuple((states.std(0, correction=0) + _SMALL).tolist()),
        return_scale=source.return_scale,
        action_low=tuple(map(float, found.low)),
        action_high=tuple(map(float, found.high)),
        best_return=float(returns.max()),
        worst_return=float(returns.min()),
        splits={"train": train, "validation": validation, "test": validation},
    )


def _split(found: Recorded, episodes: np.ndarray, context: int) -> TrajectorySplit:
    """The chosen ``episodes``, one after the other."""
    every = np.diff(found.ends, prepend=-1)
    lengths = every[episodes]
    firsts = np.cumsum(lengths) - lengths
    timesteps = np.arange(lengths.sum()) - np.repeat(firsts, lengths)
    rows = np.repeat(found.ends[episodes] + 1 - lengths, lengths) + timesteps
    rewards = found.rewards[rows].astype(np.float64)
    so_far = np.cumsum(rewards)
    ends = np.repeat(firsts + lengths, lengths)
    returns = so_far[ends - 1] - so_far + rewards
    return TrajectorySplit(
        returns=torch.from_numpy(returns.astype(np.float32)),
        states=torch.from_numpy(found.observations[rows]),
        actions=torch.from_numpy(found.actions[rows]),
        timesteps=torch.from_numpy(timesteps),
        ends=torch.from_numpy(ends),
        starts=torch.arange(len(rows)),
        context=context,
    )
