"""Maps over the patches of images: memberships of TSSA, attention of the class token, and the images themselves."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
import torch.nn.functional as F
from scipy.stats import rankdata
from torch import Tensor

from kattn_cli.audit.view import View, of_head
from kattn_cli.runs.csv_rows import Row

SHOWN = 6
"""Images whose maps are written."""
PIXELS = 64
"""Larger images are scaled down to so many, for the picture beside their maps."""


def foreground(images: Tensor, grid: tuple[int, int]) -> Tensor:
    """Return which patches of ``images`` ``(B, channels, h, w)`` on a ``grid`` (rows, columns) are bright, ``(B, N)``.

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
    """Return each map's ``(B, H, N)`` area under the ROC curve as detector of ``foreground`` ``(B, N)``: ``(B, H)``.

    The share of pairs of a foreground and a background patch where the map is greater on the foreground; ties
    count half. 0.5 is chance, below it a map finds the background. Not a number where an image has only one kind.
    """
    ranks = torch.from_numpy(np.asarray(rankdata(maps.detach().cpu().double().numpy(), axis=-1)))
    inside = foreground.cpu()[:, None].double()
    count = inside.sum(-1)
    pairs = count * (maps.shape[-1] - count)
    return ((ranks * inside).sum(-1) - count * (count + 1) / 2) / pairs


def null_auc(maps: Tensor, foreground: Tensor, shifts: int = 8) -> Tensor:
    """Return :func:`map_auc` with the foregrounds of other images, ``(B, H)``: what the place of a patch alone tells.

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


def memberships(view: View) -> Iterator[Row]:
    """Write Π of each head as a map (ToST, Figures 4b and 9)."""
    yield from _map_rows(view, _memberships(view))


def class_attentions(view: View) -> Iterator[Row]:
    """Write how much the class token takes of each patch (ToST, Figures 5 and 10)."""
    yield from _map_rows(view, list(view.class_maps.items()))


def foregrounds(view: View) -> Iterator[Row]:
    """Measure how well each map finds the foreground, beside how well it finds that of other images.

    Of grey images alone, whose background is dark: what is foreground in a photograph nobody says.
    """
    if view.images.shape[1] != 1 or len(view.images) < 2:
        return
    truth = foreground(view.images, view.model.patch_grid(view.images))
    for kind, maps in (("membership", _memberships(view)), ("class_attention", list(view.class_maps.items()))):
        for layer, values in maps:
            areas, by_chance = map_auc(values, truth), null_auc(values, truth)
            usable = areas.isfinite().all(-1)
            for head in range(values.shape[1]):
                auc, deviation = of_head(areas[usable], head)
                yield {
                    "kind": kind,
                    "layer": layer,
                    "head": head,
                    "auc": auc,
                    "auc_std": deviation,
                    "null_auc": of_head(by_chance[usable], head)[0],
                    "inputs": int(usable.sum()),
                }


def pictures(view: View) -> Iterator[Row]:
    """Write the pixels of the images that maps are written of."""
    if not (_memberships(view) or view.class_maps):
        return
    images = view.images[:SHOWN]
    side = max(images.shape[-2:])
    if side > PIXELS:
        images = F.interpolate(images, scale_factor=PIXELS / side, mode="area")
    colours = images.expand(-1, 3, -1, -1) if images.shape[1] == 1 else images[:, :3]
    labels = view.labels_of("validation", SHOWN)
    for image, (label, channels) in enumerate(zip(labels, colours.tolist(), strict=True)):
        for row, lines in enumerate(zip(*channels, strict=True)):
            for column, (red, green, blue) in enumerate(zip(*lines, strict=True)):
                place = {"image": image, "class": label, "row": row, "column": column}
                yield place | {"red": red, "green": green, "blue": blue}


def _memberships(view: View) -> list[tuple[int, Tensor]]:
    """Return each layer's index and Π over the patches, ``(B, H, patches)``."""
    rows, columns = view.model.patch_grid(view.images)
    found = [(layer, one.membership(x)) for layer, one, x in view.layers_with("membership") if not one.causal]
    return [(layer, maps[..., maps.shape[-1] - rows * columns :]) for layer, maps in found]


def _map_rows(view: View, maps: list[tuple[int, Tensor]]) -> Iterator[Row]:
    grid = view.model.patch_grid(view.images)
    for layer, values in maps:
        for image, heads in enumerate(values[:SHOWN].unflatten(-1, grid).tolist()):
            for head, lines in enumerate(heads):
                for row, line in enumerate(lines):
                    for column, value in enumerate(line):
                        place = {"image": image, "layer": layer, "head": head, "row": row, "column": column}
                        yield {**place, "value": value}
