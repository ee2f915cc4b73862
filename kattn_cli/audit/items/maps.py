"""Maps over the patches of images: memberships of TSSA, attention of the class token, and the images themselves."""

from __future__ import annotations

from collections.abc import Iterator

import torch.nn.functional as F
from torch import Tensor

from kattn_cli.audit.foreground import foreground, map_auc, null_auc
from kattn_cli.audit.view import View, of_head
from kattn_cli.runs.csv_rows import Row

SHOWN = 6
"""Images whose maps are written."""
PIXELS = 64
"""Larger images are scaled down to so many, for the picture beside their maps."""


def memberships(view: View) -> Iterator[Row]:
    """Π of each head as a map (ToST, Figures 4b and 9)."""
    yield from _map_rows(view, _memberships(view))


def class_attentions(view: View) -> Iterator[Row]:
    """How much the class token takes of each patch (ToST, Figures 5 and 10)."""
    yield from _map_rows(view, list(view.class_maps.items()))


def foregrounds(view: View) -> Iterator[Row]:
    """How well each map finds the foreground, beside how well it finds that of other images.

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
    """The pixels of the images that maps are written of."""
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
    """Of each layer, over the patches ``(B, H, patches)``."""
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
