"""The training of a policy, in stretches, of which every step and every state is kept.

Each stretch begins with new episodes and with generators seeded from the seed and the stretch's number, so that a
training that was killed goes on from its last stretch exactly as one that was not. An episode that a stretch's end cuts
short is not kept: its return would be too small.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path

import numpy as np
from pydantic import TypeAdapter, ValidationError
from stable_baselines3.common.callbacks import BaseCallback

from kattn_cli.commands.data.collect.episodes import Purpose, Recorder, derived_seed, episodes
from kattn_cli.commands.data.collect.kept import FACTS, Kept, keep
from kattn_cli.commands.data.collect.policy import REPLAY, Learner
from kattn_cli.data.trajectories.steps import Steps, joined, whole_episodes
from kattn_cli.environments.make import make_environment
from kattn_cli.errors import CheckpointError, KattnError, RunError
from kattn_cli.runs.whole_file import faults_as, replacing

Tell = Callable[[int, str], None]
"""Called with the steps so far and a note."""
STEPS = "steps"
"""The name of kept arrays."""


@dataclass(frozen=True)
class Evaluation:
    """A policy after ``step`` steps of its training: the returns of ``episodes`` episodes, as it is trained to act.

    ``cut``: steps of the stretch before that are not kept; ``seconds``: of training and evaluation so far.
    """

    step: int
    episodes: int
    mean_return: float
    std_return: float
    cut: int
    seconds: float


class Training:
    """A policy's training as it stands in ``folder``: one folder below it for each stretch."""

    def __init__(self, folder: Path, learner: Learner, seed: int, stretch: int, episodes: int) -> None:
        self.folder, self.learner = folder, learner
        self.seed, self.stretch, self.episodes = seed, stretch, episodes
        self.evaluations = [_evaluation(number, one) for number, one in enumerate(self._stretches())]

    def run(self, tell: Tell, stop: Callable[[], None]) -> Iterator[Evaluation]:
        """Train to the end, and yield each evaluation once it is on disk; ``stop`` is called at every step, may raise.

        Raises:
            KattnError: if no episode ended within the first stretch; nothing would be left of such a training.
        """
        if 0 < self.step < self.learner.steps:
            self.learner.load(Kept.read(self._place(self.step)), to_train=True)
        while self.step < self.learner.steps:
            begun = time.perf_counter()
            number = len(self.evaluations)
            # Seeded by the stretch's number: resuming draws what an unbroken training would have drawn.
            self.learner.begin(derived_seed(self.seed, Purpose.training, number))
            wanted = min(self.stretch, self.learner.steps - self.step)
            self.learner.model.learn(wanted, reset_num_timesteps=number == 0, callback=_Teller(tell, stop))
            taken = [recorder.taken() for recorder in self.learner.recorders]
            kept = joined([whole_episodes(steps) for steps in taken])
            if not number and not len(kept.rewards):
                raise KattnError(f"--evaluate-every {self.stretch}: no episode came to its end within so many steps")
            returns = self._evaluated(stop)
            before = self.evaluations[-1].seconds if self.evaluations else 0.0
            done = Evaluation(
                step=int(self.learner.model.num_timesteps),
                episodes=len(returns),
                mean_return=float(np.mean(returns)),
                std_return=float(np.std(returns)),
                cut=sum(len(steps.rewards) for steps in taken) - len(kept.rewards),
                seconds=round(before + time.perf_counter() - begun, 1),
            )
            self._keep(kept, done)
            yield done

    @property
    def step(self) -> int:
        """The number of steps that are on disk."""
        return self.evaluations[-1].step if self.evaluations else 0

    def transitions(self, step: int) -> Steps:
        """Return every whole episode of the training up to the evaluation at ``step``."""
        parts = []
        for folder in self._stretches():
            if int(folder.name) <= step:
                arrays = Kept.read(folder).arrays(STEPS)
                parts.append(Steps(*(arrays[name] for name in Steps._fields)))
        return joined(parts)

    def load(self, step: int) -> None:
        """Let the learner act as it did at the evaluation at ``step``."""
        self.learner.load(Kept.read(self._place(step)), to_train=False)

    def _evaluated(self, stop: Callable[[], None]) -> list[float]:
        env = Recorder(make_environment(self.learner.environment))
        seed = derived_seed(self.seed, Purpose.evaluation)
        return [float(one.rewards.sum()) for one in islice(episodes(env, self.learner.act, seed, stop), self.episodes)]

    def _keep(self, steps: Steps, done: Evaluation) -> None:
        """Keep a stretch, whose folder appears whole; the replay buffer, which is large, only with the last one."""
        place = self._place(done.step)
        with faults_as(RunError, place), replacing(place) as new:
            facts = {"number": len(self.evaluations), "evaluation": asdict(done), **self.learner.facts()}
            keep(new, facts, {**self.learner.arrays(), STEPS: steps._asdict()})
        if self.evaluations:
            with suppress(OSError):
                # Only after the new one is in place, so that a stop in between loses nothing.
                (self._place(self.step) / f"{REPLAY}.npz").unlink()
        self.evaluations.append(done)

    def _place(self, step: int) -> Path:
        return self.folder / f"{step:09d}"

    def _stretches(self) -> list[Path]:
        return sorted(one for one in self.folder.glob("[0-9]*") if one.is_dir())


def _evaluation(number: int, folder: Path) -> Evaluation:
    """Return the evaluation in the folder of stretch ``number``.

    Raises:
        CheckpointError: if it is damaged, or the folder of another stretch, so that one before it is gone.
    """
    facts = Kept.read(folder).facts
    if facts.get("number") != number:
        raise CheckpointError(f"{folder}: a stretch before it is gone; remove {folder.parent} to begin anew")
    try:
        found: Evaluation = TypeAdapter(Evaluation).validate_python(facts.get("evaluation"))
    except ValidationError:
        raise CheckpointError(f"{folder / FACTS}: has no evaluation; remove {folder.parent} to begin anew") from None
    return found


class _Teller(BaseCallback):
    """Reports the progress of a training, and lets it be stopped."""

    def __init__(self, tell: Tell, stop: Callable[[], None]) -> None:
        super().__init__()
        self.tell, self.stop = tell, stop

    def _on_step(self) -> bool:
        self.stop()
        if self.num_timesteps % 100 == 0:
            self.tell(self.num_timesteps, "")
        return True
