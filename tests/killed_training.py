"""A training in a process of its own that dies, as by a power cut, at a chosen moment."""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

Event = tuple[str, int]
"""What happens, and at which time it happens the process dies: ``("step", 3)`` after its third step."""


def train_until(event: Event | None, recipe: Path, results: Path) -> int:
    """Begin or resume the training of ``recipe``; returns the exit code, −9 where it was killed at ``event``."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["kattn_cli.commands.train.train"])
    process = context.Process(target=_train, args=(event, recipe, results))
    process.start()
    process.join()
    return process.exitcode or 0


def _train(event: Event | None, recipe: Path, results: Path) -> None:
    from kattn_cli.commands.train.train import train
    from kattn_cli.console import console

    torch.set_num_threads(1)
    console.quiet = True
    begin = partial(train, [str(recipe)], [], [], results=results, device=torch.device("cpu"), resume=True)
    if event is None:
        begin()
        return
    kind, time = event
    target, killer = _KILLERS[kind]
    with patch(target, killer(_original(target), _Countdown(time))):
        begin()


class _Countdown:
    def __init__(self, time: int) -> None:
        self.left = time

    def now(self) -> bool:
        self.left -= 1
        return self.left == 0


def _original(target: str) -> Any:
    module, _, name = target.rpartition(".")
    owner, _, inner = module.rpartition(".")
    imported = __import__(module if inner.islower() else owner, fromlist=["_"])
    return getattr(imported if inner.islower() else getattr(imported, inner), name)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def _after(original: Callable[..., Any], countdown: _Countdown) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        result = original(*args, **kwargs)
        if countdown.now():
            _die()
        return result

    return wrapped


def _before(original: Callable[..., Any], countdown: _Countdown) -> Callable[..., Any]:
    def wrapped(*args: Any, **kwargs: Any) -> Any:
        if countdown.now():
            _die()
        return original(*args, **kwargs)

    return wrapped


def _half_way(original: Callable[..., Any], countdown: _Countdown) -> Callable[..., Any]:
    """Dies when half of the checkpoint is written."""

    def wrapped(state: Any, file: Any) -> Any:
        if not countdown.now():
            return original(state, file)
        original(state, file)
        file.flush()
        os.ftruncate(file.fileno(), os.fstat(file.fileno()).st_size // 2)
        _die()

    return wrapped


_KILLERS = {
    "step": ("kattn_cli.training.loop.Trainer.step", _after),
    "rename": ("os.replace", _before),
    "renamed": ("os.replace", _after),
    "checkpoint": ("torch.save", _half_way),
    "rows": ("kattn_cli.experiment.training_run.append_rows", _after),
}
