"""``kattn data collect``: train a policy, and record what D4RL's data sets hold of one."""

from __future__ import annotations

import shutil
from dataclasses import asdict
from pathlib import Path

import torch

from kattn_cli.commands.data.collect.record import LEVELS, Record
from kattn_cli.commands.data.collect.settings import CollectionSettings
from kattn_cli.console import console, progress_bar
from kattn_cli.environments.make import require_control
from kattn_cli.environments.names import environment_id
from kattn_cli.errors import KattnError, Stopped
from kattn_cli.runs.lock import holding
from kattn_cli.training.interrupt import Interruption, catch_interruption


def collect(settings: CollectionSettings, *, output: Path, threads: int) -> list[Path]:
    """Train and record, or go on with what was begun; the five files, with a record and a table beside them.

    Raises:
        KattnError: if a package is missing, the environment is not of this kind, or other settings were begun there.
        Stopped: after Ctrl-C, with what was kept.
    """
    require_control("kattn data collect", "gymnasium", "stable_baselines3", "h5py")
    from kattn_cli.commands.data.collect.policy import unknown_hyperparameters

    if faults := unknown_hyperparameters(settings.algorithm, settings.hyperparameters):
        raise KattnError("\n".join(faults))
    torch.set_num_threads(threads)
    record = Record(output, settings.environment, asdict(settings))
    record.refuse_others()
    with holding(record.lock, f"{record.path}: is being collected"), catch_interruption() as interruption:
        if record.finished:
            console.print(f"{record.path}: is finished; there is nothing to do")
        else:
            _collected(settings, record, interruption)
    return [record.file(level) for level in LEVELS]


def _collected(settings: CollectionSettings, record: Record, interruption: Interruption) -> None:
    from kattn_cli.commands.data.collect.episodes import Purpose, derived_seed
    from kattn_cli.commands.data.collect.levels import LevelFiles
    from kattn_cli.commands.data.collect.policy import Learner
    from kattn_cli.commands.data.collect.training import Training

    given, seed = settings.hyperparameters, derived_seed(settings.seed, Purpose.weights)
    learner = Learner(settings.algorithm, environment_id(settings.environment), settings.steps, given, seed)
    record.begin(learner.hyperparameters, learner.bounds)
    training = Training(record.work, learner, settings.seed, settings.evaluate_every, settings.episodes)

    def stop() -> None:
        if interruption.signal is not None:
            kept = f"Stopped; {record.work} keeps {training.step:,} steps, and the same command goes on"
            raise Stopped(kept, 128 + interruption.signal)

    with progress_bar("step") as bar:
        task = bar.add_task(settings.environment, total=settings.steps, count="", note="")

        def tell(step: int, note: str) -> None:
            bar.update(task, completed=step, count=f"{step:,}")
            if note:
                bar.update(task, note=note)

        record.write_table(training.evaluations)
        for done in training.run(tell, stop):
            tell(done.step, f"return {done.mean_return:,.1f}")
            record.write_table(training.evaluations)
        levels = LevelFiles(settings, record, training, stop, lambda note: tell(settings.steps, note))
        levels.write()
    record.finish(levels.chosen(), training.evaluations)
    shutil.rmtree(record.work, ignore_errors=True)
