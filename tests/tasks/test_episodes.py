"""Rollouts: what a Decision Transformer makes of its target in the corridor, reproducibly and whatever runs beside it.

The model is trained here on scripted behaviour from the best to the worst.
"""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("gymnasium")

import numpy as np
import torch
from torch import Tensor, nn

from kattn_cli.data.sequences import Padded
from kattn_cli.data.trajectories import Windows
from kattn_cli.environments.make import make_environments
from kattn_cli.environments.names import CORRIDOR
from kattn_cli.environments.scripted import STEPS, best_return, scripted_trajectories, worst_return
from kattn_cli.models import AttentionModel
from kattn_cli.models.decision_transformer import build_decision_transformer
from kattn_cli.recipe.model import DecisionTransformer as Sizes
from kattn_cli.recipe.schema import Attention
from kattn_cli.tasks.control.episodes import Job, Outcome, episode_seed, rollouts
from kattn_cli.tasks.control.objective import ActionError

CONTEXT, EPISODES, SEED = 5, 10, 3
BEST, WORST = best_return(0.5), worst_return(0.5)


@pytest.fixture(scope="module")
def trained() -> AttentionModel:
    """Four hundred steps on two hundred episodes of all skills."""
    episodes = 200
    arrays: dict[str, Any] = scripted_trajectories(episodes, seed=0)
    states, actions = (
        torch.from_numpy(arrays[name]).unflatten(0, (episodes, STEPS)) for name in ("observations", "actions")
    )
    rewards = torch.from_numpy(arrays["rewards"]).unflatten(0, (episodes, STEPS))
    to_go = rewards.flip(1).cumsum(1).flip(1)[..., None]
    torch.manual_seed(0)
    model = build_decision_transformer(
        Sizes(dim=32, depth=2, heads=2, mlp_ratio=2.0, dropout=0.0),
        Attention(name="softmax"),
        states=2,
        actions=1,
        context=CONTEXT,
        longest=STEPS,
        mean=states.mean((0, 1)).tolist(),
        std=states.std((0, 1)).tolist(),
        return_scale=20.0,
        action_low=[-1.0],
        action_high=[1.0],
    )
    optimizer, objective = torch.optim.AdamW(model.parameters(), lr=3e-3), ActionError()
    for _ in range(400):
        which = torch.randint(episodes, (64, 1))
        steps = torch.randint(STEPS - CONTEXT + 1, (64, 1)) + torch.arange(CONTEXT)
        there = torch.ones(64, CONTEXT, dtype=torch.bool)
        windows = Windows(to_go[which, steps], states[which, steps], actions[which, steps], steps, there)
        loss = objective.loss(model(windows), Padded(windows.actions, there), 0.0)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return model.double().eval()


def run(model: Any, count: int, targets: tuple[float, ...] = (BEST, 0.0, WORST), **changed: Any) -> list[Outcome]:
    """All episodes of these targets, ``count`` at once, in order."""
    jobs = [Job(target, episode) for target in targets for episode in range(EPISODES)]
    environments = make_environments(CORRIDOR, count)
    found = rollouts(model, environments, jobs, **{"context": CONTEXT, "seed": SEED, **changed})
    return sorted(found, key=lambda one: (-one.job.target_return, one.job.episode))


def returns(outcomes: list[Outcome]) -> list[float]:
    return [one.return_ for one in outcomes]


def distances() -> list[float]:
    """From the goal, at the beginning of each episode."""
    environments: Any = make_environments(CORRIDOR, 1)
    every = [
        environments.reset(seed=[episode_seed(SEED, episode)], options={"reset_mask": np.ones(1, bool)})[0][0]
        for episode in range(EPISODES)
    ]
    return [abs(float(goal - place)) for place, goal in every]


def test_solved_when_told_to_and_not_when_told_not_to(trained: AttentionModel) -> None:
    """Of the way from the worst to the best return of each episode: nearly all of it, half, and nearly nothing."""
    shares = [
        (one.return_ - worst_return(distance)) / (best_return(distance) - worst_return(distance))
        for one, distance in zip(run(trained, 10), 3 * distances(), strict=True)
    ]
    best, middle, worst = np.reshape(shares, (3, EPISODES))
    assert best.min() > 0.95
    assert worst.max() < 0.1
    assert middle.mean() == pytest.approx(0.5, abs=0.15)


def test_reproducible_and_independent_of_how_many_run_at_once(trained: AttentionModel) -> None:
    """Exactly, with a number at once that does not divide the episodes, too."""
    one = run(trained, 1, (BEST, WORST))
    for count in (1, 4, 7):
        assert returns(run(trained, count, (BEST, WORST))) == returns(one)
    assert returns(run(trained, 4, (BEST, WORST), seed=SEED + 1)) != returns(one)


def test_processes_of_their_own_change_nothing(trained: AttentionModel) -> None:
    environments = make_environments(CORRIDOR, 2, workers=True)
    try:
        jobs = [Job(BEST, episode) for episode in range(3)]
        found = list(rollouts(trained, environments, jobs, context=CONTEXT, seed=SEED))
    finally:
        environments.close()
    assert returns(sorted(found, key=lambda one: one.job.episode)) == returns(run(trained, 4, (BEST,)))[:3]


class Watching(nn.Module):
    """Acts by a rule of its own, and keeps what it was shown."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(1, dtype=torch.float64))
        self.shown: list[Windows] = []

    def forward(self, windows: Windows) -> Tensor:
        self.shown.append(windows)
        return 0.25 * windows.states[..., 1:]


def test_what_the_model_is_shown_step_by_step() -> None:
    """Targets lowered by rewards, the last K steps, and its own actions but that of the step in hand."""
    policy = Watching()
    (outcome,) = rollouts(policy, make_environments(CORRIDOR, 1), [Job(7.0, 0)], context=4, seed=0)
    assert len(policy.shown) == outcome.length == STEPS
    environment: Any = make_environments(CORRIDOR, 1)
    state = environment.reset(seed=[episode_seed(0, 0)], options={"reset_mask": np.ones(1, bool)})[0][0]
    actions: list[float] = []
    to_go, states = [7.0], [state]
    for step, shown in enumerate(policy.shown):
        first, there = max(0, step - 3), min(step + 1, 4)
        assert shown.mask.tolist() == [[place < there for place in range(4)]]
        assert shown.timesteps[0, :there].tolist() == list(range(first, step + 1))
        assert shown.returns[0, :there, 0].tolist() == pytest.approx(to_go[first:], abs=1e-12)
        assert shown.states[0, :there].tolist() == np.array(states[first:]).tolist()
        assert shown.actions[0, :there, 0].tolist() == [*actions[first:], 0.0]
        for padded in shown[:4]:
            assert not padded[0, there:].any()
        actions.append(0.25 * float(state[1]))
        following, rewards, *_ = environment.step(np.array([[actions[-1]]], np.float32))
        state = following[0]
        states.append(state)
        to_go.append(to_go[-1] - float(rewards[0]))
    assert outcome.return_ == pytest.approx(7.0 - to_go[-1])


def test_every_episode_once_and_whole() -> None:
    """More environments than episodes, and fewer; steps are counted once."""
    for count in (2, 5):
        steps: list[int] = []
        jobs = [Job(1.0, episode) for episode in range(3)]
        found = list(
            rollouts(Watching(), make_environments(CORRIDOR, count), jobs, context=2, seed=0, on_step=steps.append)
        )
        assert sorted(one.job.episode for one in found) == [0, 1, 2]
        assert [one.length for one in found] == [STEPS] * 3
        assert sum(steps) == 3 * STEPS
        assert all(one.seconds > 0 for one in found)


def test_seeds_of_episodes() -> None:
    seeds = {episode_seed(seed, episode) for seed in range(10) for episode in range(100)}
    assert len(seeds) == 1000
    assert all(0 <= one < 2**31 for one in seeds)
    assert episode_seed(0, 1) != episode_seed(1, 0)
