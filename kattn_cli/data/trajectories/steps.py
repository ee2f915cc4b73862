"""Recorded steps of a policy, episode after episode, as D4RL's files hold them. Never imports torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from kattn_cli.errors import DataError
from kattn_cli.runs.whole_file import faults_as, replacing


class Steps(NamedTuple):
    """``T`` steps: float32 ``(T, S)``, ``(T, A)`` and ``(T,)``, bool ``(T,)``.

    ``terminals``: the environment ended the episode there; ``timeouts``: its time was up. ``next_observations``
    ``(T, S)``: what followed, also after the last step of an episode.
    """

    observations: np.ndarray
    actions: np.ndarray
    rewards: np.ndarray
    terminals: np.ndarray
    timeouts: np.ndarray
    next_observations: np.ndarray

    @property
    def ends(self) -> np.ndarray:
        """The indices of the last step of each episode ``(E,)``."""
        return np.flatnonzero(self.terminals | self.timeouts)


def joined(parts: Sequence[Steps]) -> Steps:
    """Return steps one after the other."""
    return Steps(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True)))


def whole_episodes(steps: Steps) -> Steps:
    """Return the steps without those after the last episode's end."""
    count = int(steps.ends[-1]) + 1 if len(steps.ends) else 0
    return Steps(*(array[:count] for array in steps))


def returns_of(rewards: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Return the sum of rewards of each episode, float64 ``(E,)``; ``ends``: the index of its last step ``(E,)``."""
    starts = np.concatenate([[0], ends[:-1] + 1]) if len(ends) else ends
    # In float64, since a thousand float32 rewards added up would lose digits of a return.
    return np.add.reduceat(rewards.astype(np.float64), starts) if len(ends) else np.empty(0)


def write_steps(path: Path, steps: Steps, attributes: Mapping[str, str | int | float]) -> None:
    """Write ``steps`` whole, with ``attributes`` of the file; equal ones give equal bytes.

    Raises:
        DataError: if it cannot be written; what was there before stays.
    """
    import h5py

    with faults_as(DataError, path), replacing(path) as new, h5py.File(new, "w", track_order=True) as file:
        for name, array in steps._asdict().items():
            file.create_dataset(name, data=array, compression="gzip", shuffle=True)
        for key, value in attributes.items():
            file.attrs[key] = value
