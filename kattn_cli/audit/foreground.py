"""Do maps over the patches, of membership or of class attention, find the foreground of an image?

Source: ToST, "Token Statistics Transformer", §4.1 and Figures 4b, 5, 9, 10, which show it on chosen images; here it
is a number over all. For images on a dark background, such as Fashion-MNIST. B: images, H: heads, N: patches.
"""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import rankdata
from torch import Tensor


def foreground(images: Tensor, grid: tuple[int, int]) -> Tensor:
    """The bright patches of ``images`` ``(B, channels, h, w)`` on a ``grid`` of rows and columns: bool ``(B, N)``.

    A patch is bright where its mean intensity is above Otsu's threshold of its own image's patches: the split into
    two groups with the greatest variance between them. An image of one intensity has no foreground, and dark parts of
    an object beside bright ones count as background.
    """
    means = F.adaptive_avg_pool2d(images.mean(1, keepdim=True), grid).flatten(1).double()
    values = means.sort(-1).values
    n = values.shape[-1]
    below = torch.arange(1, n, device=values.device)  # patches in the darker group
    sums = (values - values.mean(-1, keepdim=True)).cumsum(-1)[:, :-1]
    between = sums.square() / (below * (n - below))  # the variance between the groups, but for a constant
    threshold = values.gather(-1, between.argmax(-1, keepdim=True))
    return means > threshold


def map_auc(maps: Tensor, foreground: Tensor) -> Tensor:
    """Area under the ROC curve of each map ``(B, H, N)`` as detector of ``foreground`` ``(B, N)``: ``(B, H)``.

    The share of pairs of a foreground and a background patch where the map is greater on the foreground; ties
    count half. 0.5 is chance, below it a map finds the background. Not a number where an image has only one kind.
    """
    ranks = torch.from_numpy(np.asarray(rankdata(maps.detach().cpu().double().numpy(), axis=-1)))
    inside = foreground.cpu()[:, None].double()
    count = inside.sum(-1)
    pairs = count * (maps.shape[-1] - count)
    return ((ranks * inside).sum(-1) - count * (count + 1) / 2) / pairs


def null_auc(maps: Tensor, foreground: Tensor, shifts: int = 8) -> Tensor:
    """:func:`map_auc` with the foregrounds of other images, ``(B, H)``: what the place of a patch alone tells.

    The mean over up to ``shifts`` cyclic shifts of the batch, evenly spread over it, without the foregrounds that
    have only one kind. Not a number where :func:`map_auc` is not.

    Raises:
        ValueError: if there is one image.
    """
    images = len(maps)
    if images < 2:
        raise ValueError("null_auc needs the foregrounds of other images, and there is one image")
    turns = min(shifts, images - 1)
    areas = [map_auc(maps, foreground.roll(turn * images // (turns + 1), 0)) for turn in range(1, turns + 1)]
    return torch.stack(areas).nanmean(0).where(map_auc(maps, foreground).isfinite(), torch.nan)
