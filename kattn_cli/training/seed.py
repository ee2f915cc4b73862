"""Random numbers as a function of the seed and the step.

Nothing depends on what was drawn before: initialisation, data order, augmentation and dropout each have a
stream of their own, and every step seeds its own. So a run resumed at any step goes on exactly as it
would have, and no generator's state needs saving.
"""

from __future__ import annotations

import random
from enum import IntEnum

import numpy as np
import torch


class Stream(IntEnum):
    """What the random numbers are for."""

    INITIALISATION = 0
    ORDER = 1
    STEP = 2
    ATTACK = 3
    COMPLEXITY = 4
    IMAGE = 5
    CORRUPTION = 6
    PROBE = 7


def derived_seed(seed: int, stream: Stream, counter: int = 0) -> int:
    """Return a 63-bit seed for one stream and counter (an epoch, a step or a shard)."""
    state = np.random.SeedSequence([seed, int(stream), counter]).generate_state(1, np.uint64)
    # Shifted by one bit, so that the seed fits a signed integer of 64 bits.
    return int(state[0] >> np.uint64(1))


def seed_torch(seed: int, stream: Stream, counter: int = 0) -> None:
    """Seed torch's global generators: the CPU's, and the GPUs' once one is in use.

    ``torch.manual_seed`` would queue a call for a GPU that never comes, at a millisecond a step.
    """
    value = derived_seed(seed, stream, counter)
    torch.default_generator.manual_seed(value)
    if torch.cuda.is_initialized():
        torch.cuda.manual_seed_all(value)


def seed_all(seed: int, stream: Stream, counter: int = 0) -> None:
    """Seed torch's, numpy's and Python's global generators, which timm's augmentation draws from."""
    seed_torch(seed, stream, counter)
    value = derived_seed(seed, stream, counter)
    # numpy's global generator takes seeds of 32 bits.
    np.random.seed(value % 2**32)
    random.seed(value)


def generator(seed: int, stream: Stream, counter: int = 0) -> torch.Generator:
    """Return a generator on the CPU, so that its numbers are the same whatever the device."""
    return torch.Generator().manual_seed(derived_seed(seed, stream, counter))
