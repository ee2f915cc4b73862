"""scikit-learn's digits: 1,797 handwritten digits of 8 × 8 pixels, from the UCI test set. Needs no download.

The split is a rule, not a draw, so that it is the same for ever: within each class, in the file's order,
of every ten images the 1st goes to validation, the 5th and the 10th to the test set, the rest to training:
1,257 to train on, 185 for validation, 355 to test. Writers are not kept apart.
"""

from __future__ import annotations

import torch
from sklearn.datasets import load_digits

from kattn_cli.data.images import Source, Split, SplitName

_TURN: dict[SplitName, tuple[int, ...]] = {
    "train": (1, 2, 3, 5, 6, 7, 8),
    "validation": (0,),
    "test": (4, 9),
}


def load() -> dict[SplitName, Split]:
    """The three splits."""
    bunch = load_digits()
    images = torch.tensor(bunch.images / 16, dtype=torch.float32)[:, None]
    labels = torch.tensor(bunch.target, dtype=torch.int64)
    turn = torch.zeros_like(labels)
    for label in range(10):
        members = labels == label
        turn[members] = torch.arange(int(members.sum())) % 10
    chosen = {name: torch.isin(turn, torch.tensor(turns)) for name, turns in _TURN.items()}
    return {name: Split(images[mask], labels[mask]) for name, mask in chosen.items()}


SOURCE = Source("1,797 handwritten digits, bundled with scikit-learn", 10, 1, 8, load)
