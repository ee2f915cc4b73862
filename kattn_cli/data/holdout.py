"""Validation images held out of the training images by a rule, not a draw, so that they are always the same.

Of the ``m`` images of a class, in the data set's order, ``k = round(m · share)`` are held out (at least one and at
most ``m - 1``), evenly spread: the ``i``-th of them is the one in the middle of the ``i``-th of ``k`` equal parts.
No seed has a say in it, so that runs of different seeds are chosen on the same images.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from kattn_cli.data.images import SplitName
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import DataSection

DEFAULT_SHARE = 0.1


def hold_out(labels: Tensor, share: float) -> tuple[Tensor, Tensor]:
    """Return the indices to train on and those held out, each in ascending order; ``labels`` ``(n,)`` int64.

    A class of one image keeps it for training.
    """
    held_out = torch.zeros(len(labels), dtype=torch.bool)
    # Stable, so that the images of a class stay in the data set's order, which the rule counts in.
    by_class = labels.argsort(stable=True)
    for members in by_class.split(labels.bincount().tolist()):
        count = len(members)
        wanted = min(max(int(count * share + 0.5), 1), count - 1)
        held_out[members[[(2 * i + 1) * count // (2 * wanted) for i in range(wanted)]]] = True
    return torch.where(~held_out)[0], torch.where(held_out)[0]


def with_validation(splits: Mapping[SplitName, Any], data: DataSection) -> dict[SplitName, Any]:
    """Return the splits with one to choose the best epoch by: the data set's own, one held out, or the test split.

    Raises:
        DataError: if no class has samples enough for one to be held out.
    """
    if data.choose_on == "test":
        return {"train": splits["train"], "validation": splits["test"], "test": splits["test"]}
    if "validation" in splits:
        return dict(splits)
    train = splits["train"]
    kept, held_out = hold_out(train.labels, data.validation or DEFAULT_SHARE)
    if len(held_out) == 0:
        raise DataError(f"{data.name}: no class has two training samples, so that none can be held out to choose by")
    return {"train": train.subset(kept), "validation": train.subset(held_out), "test": splits["test"]}


def check_labels(name: str, splits: Mapping[SplitName, Any], classes: int, unit: str) -> None:
    """Require samples in every split, each with a label below ``classes``.

    Raises:
        DataError: naming the data set and the split.
    """
    for split_name, split in splits.items():
        what = f"{name}, {split_name} split"
        if len(split) == 0:
            raise DataError(f"{what}: there are no {unit}")
        for label in (int(split.labels.min()), int(split.labels.max())):
            if not 0 <= label < classes:
                raise DataError(f"{what}: has a label {label}, and there are {classes} classes: 0 … {classes - 1}")
