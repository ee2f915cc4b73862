"""Whole episodes of an environment under a model that is told what return to reach.

Source: Chen et al. 2021, "Decision Transformer", Algorithm 1: the target is lowered by each reward, and the model sees
the last K steps. K: steps of its context, S and A: widths of a state and of an action, n: environments at once.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from kattn_cli.data.trajectories import Windows

SEEDS = 2**31
"""As many as an environment is sure to take."""


class Policy(Protocol):
    """A Decision Transformer in ``eval`` mode."""

    def __call__(self, windows: Windows) -> Tensor:
        """The action that each state calls for, ``(B, K, A)``."""

    def parameters(self) -> Iterator[Tensor]:
        """Whose device and precision are those of what it is given."""


class Environments(Protocol):
    """A vector of n environments in gymnasium's manner, none of which begins anew by itself."""

    num_envs: int
    single_observation_space: Any
    single_action_space: Any

    def reset(self, *, seed: Any, options: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
        """Begin anew where ``options["reset_mask"]`` says so; observations of all, ``(n, S)``."""

    def step(self, actions: Any) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        """Observations, rewards, whether each is over or cut short, and what else there is to say."""


@dataclass(frozen=True)
class Job:
    """One episode to run: its target, as the environment counts returns, and its number."""

    target_return: float
    episode: int


@dataclass(frozen=True)
class Outcome:
    """An episode that was run: the return it reached, its steps, and its share of the time."""

    job: Job
    return_: float
    length: int
    seconds: float


def episode_seed(seed: int, episode: int) -> int:
    """Return what an episode's environment begins with: a function of ``seed`` and its number alone."""
    return int(np.random.SeedSequence([seed, episode]).generate_state(1)[0]) % SEEDS


@torch.inference_mode()
def rollouts(
    policy: Policy,
    environments: Environments,
    jobs: Sequence[Job],
    *,
    context: int,
    seed: int,
    on_step: Callable[[int], object] = lambda running: None,
) -> Iterator[Outcome]:
    """Run each of ``jobs`` whole, once; outcomes come as episodes end.

    As many run at once as there are environments, by one forward pass a step. With weights in float64 the actions,
    which are rounded to the environment's own type, do not depend on how many those are: what a batch changes in its
    samples lies far below that rounding.

    Args:
        context: steps that the model sees, K.
        seed: of the episodes; those of one number begin alike, whatever their target.
        on_step: told after each step how many episodes were running.
    """
    like = next(policy.parameters())
    waiting = list(reversed(jobs))
    count = environments.num_envs
    space = environments.single_action_space
    memory = _Memory(count, context, environments.single_observation_space.shape[0], space.shape[0], like)
    running: list[_Running | None] = [None] * count
    fresh, states = np.ones(count, bool), np.zeros(0)
    while waiting or any(running):
        if fresh.any():
            for slot in np.flatnonzero(fresh):
                running[slot] = _Running(waiting.pop()) if waiting else None
            states = _begin(environments, running, fresh, seed)
            memory.forget(torch.from_numpy(fresh))
        active = [slot for slot, one in enumerate(running) if one]
        if not active:
            return
        started = time.perf_counter()
        targets = [one.target if one else 0.0 for one in running]
        memory.see(torch.tensor(targets, dtype=torch.float64), torch.as_tensor(np.asarray(states, np.float32)))
        actions = np.zeros((count, *space.shape), space.dtype)
        actions[active] = np.clip(_act(policy, memory, active), space.low, space.high)
        memory.act(torch.from_numpy(actions))
        states, rewards, over, cut, _ = environments.step(actions)
        share = (time.perf_counter() - started) / len(active)
        fresh = np.asarray(over | cut, bool)
        for slot in active:
            one = running[slot]
            assert one is not None
            one.add(float(rewards[slot]), share)
            if fresh[slot]:
                yield one.outcome()
        on_step(len(active))


class _Running:
    """An episode on its way."""

    def __init__(self, job: Job) -> None:
        self.job, self.target = job, job.target_return
        self.reached, self.length, self.seconds = 0.0, 0, 0.0

    def add(self, reward: float, seconds: float) -> None:
        """Count a step."""
        self.target -= reward
        self.reached += reward
        self.length += 1
        self.seconds += seconds

    def outcome(self) -> Outcome:
        """Return what became of it."""
        return Outcome(self.job, self.reached, self.length, self.seconds)


class _Memory:
    """The last K steps of each environment, ``(n, K, …)``; what is not there yet stands at the end, as zeros."""

    def __init__(self, count: int, context: int, states: int, actions: int, like: Tensor) -> None:
        self.device, self.context = like.device, context
        zeros = like.new_zeros
        self.returns, self.states = zeros(count, context, 1), zeros(count, context, states)
        self.actions = zeros(count, context, actions)
        self.timesteps = torch.zeros(count, context, dtype=torch.int64, device=self.device)
        self.steps = torch.zeros(count, dtype=torch.int64, device=self.device)
        self.rows = torch.arange(count, device=self.device)

    @property
    def last(self) -> Tensor:
        """Where the step in hand stands, ``(n,)``."""
        return (self.steps - 1).clamp(max=self.context - 1)

    def forget(self, which: Tensor) -> None:
        """Forget the episodes where ``which`` ``(n,)`` is true."""
        for kept in (self.returns, self.states, self.actions, self.timesteps, self.steps):
            kept[which.to(self.device)] = 0

    def see(self, targets: Tensor, states: Tensor) -> None:
        """Take the next step's return to go ``(n,)`` and state ``(n, S)``."""
        full = self.steps >= self.context
        for kept in (self.returns, self.states, self.actions, self.timesteps):
            kept[full] = kept[full].roll(-1, 1)
        self.steps += 1
        at = (self.rows, self.last)
        self.returns[at] = targets.to(self.returns)[:, None]
        self.states[at] = states.to(self.states)
        self.actions[at] = 0
        self.timesteps[at] = self.steps - 1

    def act(self, actions: Tensor) -> None:
        """Take the action of that step, ``(n, A)``."""
        self.actions[self.rows, self.last] = actions.to(self.actions)

    def windows(self, active: list[int]) -> Windows:
        """Return what the model is to see of these environments."""
        mask = torch.arange(self.context, device=self.device) < self.steps[:, None]
        kept = (self.returns, self.states, self.actions, self.timesteps, mask)
        return Windows(*(one[active] for one in kept))


def _act(policy: Policy, memory: _Memory, active: list[int]) -> NDArray[Any]:
    """Return the actions of these environments' steps in hand, ``(len(active), A)``."""
    said = policy(memory.windows(active))
    return said[torch.arange(len(active), device=said.device), memory.last[active]].cpu().numpy()


def _begin(
    environments: Environments, running: Sequence[_Running | None], fresh: NDArray[np.bool_], seed: int
) -> NDArray[Any]:
    """Begin the episodes where ``fresh``; where there is none left the environment begins anew unwatched."""
    seeds = [episode_seed(seed, one.job.episode) if one else 0 for one in running]
    return np.asarray(environments.reset(seed=seeds, options={"reset_mask": fresh.copy()})[0])
