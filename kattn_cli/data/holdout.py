"""Which training images are held out for validation: a rule, not a draw, so that it is the same for ever.

Of the ``m`` images of a class, in the data set's order, ``k = round(m · share)`` are held out (at least one and at
most ``m - 1``), evenly spread: the ``i``-th of them is the one in the middle of the ``i``-th of ``k`` equal parts.
No seed has a say in it, so that runs of different seeds are chosen on the same images.
"""

from __future__ import annotations

import torch
from torch import Tensor

DEFAULT_SHARE = 0.1


def hold_out(labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """The indices to train on and those held out, each in ascending order; ``labels`` ``(n,)`` int64.

    A class of one image keeps it for training.
    """
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    by_class = labels.argsort(stable=True)
    for members in by_class.split(labels.bincount().tolist()):
        count = len(members)
        wanted = min(max(int(count * share + 0.5), 1), count - 1)
        held_out[members[[(2 * i + 1) * count // (2 * wanted) for i in range(wanted)]]] = True
    return torch.where(~held_out)[0], torch.where(held_out)[0]
