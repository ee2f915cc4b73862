"""Bits of seeds and images: whether an image was right, seeds and images both random and crossed.

An image that is hard is hard for all seeds, so images are not independent over seeds, nor seeds over images. Radiology
knows the design as many readers and many cases.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from kattn_cli.statistics.effect import NONE, ONE, SAME, StudentEffect
from kattn_cli.statistics.power import Components

Bits = Mapping[int, NDArray[np.bool_]]
"""Seed → whether each image was right, ``(images,)``, of all seeds in the same order."""
FLOOR = "both are right on {share} of all images, so nothing is left to compare"


def crossed(first: Bits, second: Bits) -> StudentEffect:
    """Return the first's accuracy less the second's in points, over the seeds that both have.

    The paired differences are a two-way table of seeds and images, both random: the mean's variance is
    ``(MS_seeds + max(MS_images − MS_both, 0)) / (seeds × images)`` with Satterthwaite's degrees of freedom (Hillis,
    2007).

    Raises:
        ValueError: if the images are not as many for all seeds of both.
    """
    seeds = sorted(set(first) & set(second))
    if not seeds:
        return StudentEffect(math.nan, 0, 0, "crossed seeds × images", nothing=NONE)
    sizes = {len(part[seed]) for seed in seeds for part in (first, second)}
    if len(sizes) != 1:
        raise ValueError(f"seeds of {sorted(sizes)} images cannot be compared image by image")
    ours, theirs = (100 * np.stack([part[seed] for seed in seeds]).astype(float) for part in (first, second))
    gains = ours - theirs
    count, images = gains.shape
    levels = sorted((float(ours.mean()), float(theirs.mean())))
    room = min(levels[1], 100 - levels[0])
    estimate = float(gains.mean())
    of_seeds = images * float(gains.mean(1).var(ddof=1)) if count > 1 else math.nan
    of_images = count * float(gains.mean(0).var(ddof=1)) if images > 1 else math.nan
    rest = gains - gains.mean(1, keepdims=True) - gains.mean(0) + estimate
    both = float((rest**2).sum()) / ((count - 1) * (images - 1)) if count > 1 and images > 1 else math.nan
    model = "crossed seeds × images"
    if room == 0:
        return StudentEffect(
            estimate, count, images, model, nothing=FLOOR.format(share=f"{levels[0]:.0f} %"), room=room
        )
    if not of_seeds > 0:
        why = SAME if count > 1 else ONE
        return StudentEffect(estimate, count, images, model, nothing=why, room=room)
    left = max(of_images - both, 0.0)
    df = (of_seeds + left) ** 2 / (of_seeds**2 / (count - 1) + left**2 / (images - 1))
    return StudentEffect(
        estimate,
        count,
        images,
        model,
        room=room,
        standard_error=math.sqrt((of_seeds + left) / (count * images)),
        df=df,
        components=Components(max(of_seeds - both, 0.0) / images, left / count, both),
    )
