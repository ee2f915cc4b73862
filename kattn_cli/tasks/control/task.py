"""Offline reinforcement learning: actions from recorded trajectories."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from kattn_cli.data.holdout import hold_out
from kattn_cli.data.trajectories import TrajectoryData, TrajectoryFacts, TrajectorySet, TrajectorySplit
from kattn_cli.data.trajectories.trajectory_set import Recorded
from kattn_cli.environments.make import LONGEST
from kattn_cli.environments.names import ENVIRONMENTS, short_name
from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, Layers, build_decision_transformer, trajectory_layers
from kattn_cli.recipe.data import TrajectorySection
from kattn_cli.recipe.model import DecisionTransformer
from kattn_cli.recipe.schema import Recipe
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import LOSS
from kattn_cli.tasks.control.objective import ActionError
from kattn_cli.tasks.control.report import measure_and_print
from kattn_cli.tasks.task import Asked, Task

HELD_OUT = 0.05
"""The share of the episodes to choose the best epoch by, unless a recipe says."""
_SMALL = 1e-6


class Control(Task[TrajectorySet, TrajectorySection, TrajectoryData]):
    """The actions of recorded episodes, which are then acted out in their environment."""

    reads = "trajectories"
    holds = "trajectories"
    short = "win"
    measure = LOSS
    section = TrajectorySection
    models = (DecisionTransformer,)
    options = frozenset({"seed", "target_return", "episodes", "workers"})

    def load(self, source: TrajectorySet, section: TrajectorySection) -> TrajectoryData:
        """Return the episodes as windows: to train on, and to choose the best epoch by.

        Of the episodes, ``data.validation`` (by default 0.05) are held out: whole ones, evenly spread over the data
        set's order by the rule of :mod:`kattn_cli.data.holdout`, which no seed has a say in. What a policy is worth is
        measured in its environment, not on recorded steps; the split ``test`` is therefore the validation split.

        Raises:
            DataError: if the data set cannot be loaded, has a single episode, or ``section`` asks for what has no
                meaning.
        """
        for fault in self.data_faults(section, source, None):
            raise DataError(f"{'.'.join(map(str, fault.path))}: {fault.message}")
        found = source.load()
        kept, held_out = hold_out(torch.zeros(len(found.ends), dtype=torch.int64), section.validation or HELD_OUT)
        if len(held_out) == 0:
            raise DataError(
                f"{found.where}: has one whole episode, and none can be held out to choose the best epoch by"
            )
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

    def outline(self, source: TrajectorySet, section: TrajectorySection, folder: Path | None) -> TrajectoryData:
        """Return what the files say, or else the environment; an episode is at most :data:`LONGEST` steps."""
        known = ENVIRONMENTS.get(short_name(source.environment or ""))
        try:
            facts = source.facts()
            states, actions = facts.states, facts.actions
        except DataError:
            if known is None:
                raise
            states, actions = known.states, known.actions
        return TrajectoryData(
            name=section.name,
            environment=source.environment or "",
            states=states,
            actions=actions,
            context=source.context,
            longest=LONGEST,
            mean=(0.0,) * states,
            std=(1.0,) * states,
            return_scale=source.return_scale,
            action_low=(-1.0,) * actions,
            action_high=(1.0,) * actions,
            best_return=0.0,
            worst_return=0.0,
            splits={},
        )

    def shape(self, data: TrajectoryData) -> str:
        """See :class:`Task`."""
        return f"windows of {data.context} steps, states of {data.states} numbers and actions of {data.actions}"

    def length(self, source: TrajectorySet, section: TrajectorySection) -> int | None:
        """Return the steps of a window."""
        return source.context

    def length_of(self, data: TrajectoryData) -> int:
        """Return the steps of a window."""
        return data.context

    def layers(self, model: Any, length: int) -> Layers:
        """See :class:`Task`."""
        return trajectory_layers(model, length)

    def build(self, recipe: Recipe, data: TrajectoryData) -> AttentionModel:
        """See :class:`Task`."""
        assert isinstance(recipe.model, DecisionTransformer)
        return build_decision_transformer(
            recipe.model,
            recipe.attention,
            states=data.states,
            actions=data.actions,
            context=data.context,
            longest=data.longest,
            mean=data.mean,
            std=data.std,
            return_scale=data.return_scale,
            action_low=data.action_low,
            action_high=data.action_high,
        )

    def objective(self, data: TrajectoryData) -> ActionError:
        """See :class:`Task`."""
        return ActionError()

    def evaluate(self, runs: Sequence[Run], asked: Asked) -> None:
        """Act in each run's environment, for whole episodes."""
        measure_and_print(runs, asked)

    def data_faults(
        self, section: TrajectorySection, source: TrajectorySet, facts: TrajectoryFacts | None
    ) -> Iterable[Fault]:
        """See :class:`Task`."""
        if section.choose_on == "test":
            why = "trajectories have no test split: the test is to act, by kattn eval"
            yield Fault(("data", "choose_on"), why)
        if section.classes:
            yield Fault(("data", "classes"), f"{source.name} holds trajectories, which have none; leave this out")

    def causal(self, model: Any) -> str:
        """See :class:`Task`."""
        return "decision_transformer"

    def contents(self, source: TrajectorySet, section: TrajectorySection) -> str:
        """See :class:`Task`."""
        return source.load().summary()


def _split(found: Recorded, episodes: np.ndarray, context: int) -> TrajectorySplit:
    """Return the chosen ``episodes``, one after the other."""
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
