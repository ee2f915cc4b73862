"""The files of a collection: one for each of D4RL's levels (Fu et al. 2020, arXiv:2004.07219, §C).

``random`` acts by chance; ``medium`` is the first policy of a training that is a third as good as the best one, here on
a scale from the random policy's return to the best's; ``expert`` is the best; ``medium_replay`` is all that was seen in
training up to the medium policy; ``medium_expert`` is the medium and the expert's, half each. Deviations: every episode
is whole, the last one of a file included; the best policy, and not the last, is the expert.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from stable_baselines3.common.utils import set_random_seed

from kattn_cli.commands.data.collect.episodes import Act, Purpose, Recorder, derived_seed, episodes
from kattn_cli.commands.data.collect.policy import Learner
from kattn_cli.commands.data.collect.record import LEVELS, Record
from kattn_cli.commands.data.collect.settings import CollectionSettings
from kattn_cli.commands.data.collect.training import Evaluation, Training
from kattn_cli.data.trajectories.steps import Steps, joined, whole_episodes, write_steps
from kattn_cli.environments.make import make_environment


@dataclass
class LevelFiles:
    """The files, each made when it is not there yet; ``stop`` is called at every step, and may raise."""

    settings: CollectionSettings
    record: Record
    training: Training
    stop: Callable[[], None]
    note: Callable[[str], None]

    def write(self) -> None:
        """Make those that are not there.

        Raises:
            DataError: if one cannot be written.
        """
        for level in LEVELS:
            if not self.record.file(level).exists():
                self.note(f"recording {level}")
                write_steps(self.record.file(level), *self._made(level))

    def chosen(self) -> dict[str, Evaluation]:
        """Return the evaluations of the medium and of the expert policy."""
        evaluations = self.training.evaluations
        expert = max(evaluations, key=lambda one: one.mean_return)
        random = self.record.mean_return("random")
        least = random + self.settings.medium * (expert.mean_return - random)
        # At most the expert's return, or no policy would do where training stayed below chance.
        medium = next(one for one in evaluations if one.mean_return >= min(least, expert.mean_return))
        return {"medium": medium, "expert": expert}

    def _made(self, level: str) -> tuple[Steps, dict[str, Any]]:
        if level == "random":
            steps, step = self._played(level, None), 0
        elif level == "medium_replay":
            step = self.chosen()["medium"].step
            steps = self.training.transitions(step)
        elif level == "medium_expert":
            half = self.settings.transitions // 2
            steps = joined([_first(self.record.steps(one), half) for one in ("medium", "expert")])
            step = self.chosen()["expert"].step
        else:
            step = self.chosen()[level].step
            self.training.load(step)
            steps = self._played(level, self.training.learner)
        return steps, self.record.attributes_of(level, steps, step)

    def _played(self, level: str, learner: Learner | None) -> Steps:
        """Return whole episodes, of ``transitions`` steps at least; ``learner``: who acts, or chance."""
        env = Recorder(make_environment(self.settings.environment))
        seed = derived_seed(self.settings.seed, Purpose.recording, LEVELS.index(level))
        # Policies draw from the global generators, chance from the action space: both are seeded.
        set_random_seed(seed)
        env.action_space.seed(seed)
        act: Act = learner.act if learner else lambda observation: env.action_space.sample()
        parts: list[Steps] = []
        count = 0
        for episode in episodes(env, act, seed, self.stop):
            parts.append(episode)
            count += len(episode.rewards)
            if count >= self.settings.transitions:
                return joined(parts)
            self.note(f"recording {level}: {count:,} of {self.settings.transitions:,}")
        raise AssertionError("episodes never end")


def _first(steps: Steps, count: int) -> Steps:
    """Return the first whole episodes that have ``count`` steps together, or as many as there are."""
    ends = steps.ends
    wanted = min(int(np.searchsorted(ends, count - 1)), len(ends) - 1)
    return whole_episodes(Steps(*(array[: int(ends[wanted]) + 1] for array in steps)))
