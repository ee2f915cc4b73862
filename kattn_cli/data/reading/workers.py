"""Worker processes that decode images ahead of their use."""

from __future__ import annotations

import random
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing import get_context
from types import FrameType
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor
from torch.utils.data import DataLoader, Dataset

from kattn_cli.data.reading.encoded import Encoded, Unreadable, open_image
from kattn_cli.errors import DataError

# Workers are forked where that is safe, so that they share the list of images and do not copy it.
_START = "fork" if sys.platform == "linux" else None

Transform = Callable[[Image.Image], Tensor]
Batch = Sequence[tuple[int, int | None]]
"""Which images, and the seed of each; without a seed, nothing is random."""
Decoded = tuple[Tensor, Tensor, list[tuple[str, str]]]


@dataclass(frozen=True)
class Work(Dataset[Decoded]):
    """The work of a process: one whole batch at a time."""

    encoded: Encoded
    rows: Tensor
    targets: Tensor
    channels: int
    only_size: int | None
    transform: Transform

    def __getitem__(self, batch: Batch) -> Decoded:
        images, kept, problems = [], [], []
        # Without workers this runs in the training's own process, whose generators must not move.
        with _generators_restored():
            for index, seed in batch:
                row = int(self.rows[index])
                try:
                    image = self._open(row)
                except Unreadable as error:
                    problems.append((self.encoded.name(row), str(error)))
                    continue
                if seed is not None:
                    _seed(seed)
                images.append(self.transform(image))
                kept.append(index)
        pixels = torch.stack(images) if images else torch.empty(0, self.channels, 0, 0, dtype=torch.uint8)
        return pixels, self.targets[kept], problems

    def _open(self, row: int) -> Image.Image:
        image = open_image(self.encoded.source(row), self.channels)
        if self.only_size and image.size != (self.only_size, self.only_size):
            width, height = image.size
            raise Unreadable(
                f"{height} × {width} pixels, not {self.only_size} × {self.only_size}: give data.image_size"
            )
        return image


def decoded_batches(work: Dataset[Decoded], plan: Sequence[Batch], workers: int, pin: bool) -> Iterator[Decoded]:
    """Yield a batch for each of ``plan``, made ahead by ``workers`` processes; ``pin``: in pinned memory, for a GPU.

    Raises:
        DataError: if there cannot be such processes, as without ``/dev/shm``.
    """
    workers = min(workers, len(plan))
    with warnings.catch_warnings():
        # More workers than processors are the user's choice, and of use where files are slow to come.
        warnings.filterwarnings("ignore", message=".*worker processes", category=UserWarning)
        loader: DataLoader[Decoded] = DataLoader(
            work,
            batch_size=None,
            sampler=plan,
            num_workers=workers,
            collate_fn=_as_it_is,
            pin_memory=pin,
            worker_init_fn=_start_worker,
            multiprocessing_context=_START if workers else None,
            # A generator of its own, or the loader would draw its seed from torch's global one.
            generator=torch.Generator(),
        )
        try:
            if workers:
                get_context(_START).Lock()  # fails as the loader would, which would leave half of itself behind
            return iter(loader)
        except OSError as error:
            raise DataError(
                f"data.workers: no processes can read ahead ({error.strerror or error}); they need memory, some of it "
                "shared, in /dev/shm; data.workers=0 does without them"
            ) from None


def _as_it_is(batch: Any) -> Any:
    return batch


def _start_worker(worker: int) -> None:
    """Leave signals to a whole group of processes to the parent, at whose end the workers end."""
    # Ctrl-C reaches every process of the group; the step in hand still needs its batches.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, _once_ignored)


def _once_ignored(number: int, frame: FrameType | None) -> None:
    """Ignore the first signal: the loader's own request to end comes again."""
    signal.signal(number, signal.SIG_DFL)


def _seed(seed: int) -> None:
    random.seed(seed)
    # In two halves: numpy takes words of 32 bits.
    np.random.seed([seed & 0xFFFFFFFF, (seed >> 32) & 0xFFFFFFFF])
    torch.default_generator.manual_seed(seed)


@contextmanager
def _generators_restored() -> Iterator[None]:
    python, numpy, cpu = random.getstate(), np.random.get_state(), torch.get_rng_state()
    try:
        yield
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
        torch.set_rng_state(cpu)
