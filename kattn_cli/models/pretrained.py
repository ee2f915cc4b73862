"""Pretrained weights of timm's vision transformers, taken over as far as the mechanisms have a place for them.

timm loads them into its own model with softmax attention, where it resizes the position code and sums the first
convolution over channels as needed; from there :mod:`~kattn_cli.models.transfer` takes them over.
"""

from __future__ import annotations

import textwrap
from typing import Any

import timm

from kattn_cli.data.reading.network import hub, patient
from kattn_cli.errors import CheckpointError
from kattn_cli.models import Classifier
from kattn_cli.models.transfer import Tensors, Transfer, match, read_tensors, take_over

TIMM = "timm"


def load_pretrained(model: Classifier, name: str, weights: str) -> Transfer:
    """Load ``weights`` into ``model``, whose backbone is timm's ``name``, and return what became of each tensor.

    Args:
        weights: ``timm`` for timm's own, which it fetches, or a file in timm's naming.

    Raises:
        CheckpointError: if they cannot be read, or are those of another architecture.
    """
    state = _fetch(name) if weights == TIMM else read_tensors(weights)
    source = _fitted(model.backbone, name, weights, state)
    where = f"timm ({name})" if weights == TIMM else weights
    matches = match(model.backbone.state_dict(), source)
    return take_over(model.backbone, matches, where, source, originals=state)


def _fetch(name: str) -> Tensors:
    with hub() as silent, patient():
        try:
            return dict(timm.create_model(name, pretrained=True).state_dict())
        except Exception as error:
            raise CheckpointError(f"timm's weights of {name} cannot be fetched: {silent or _one_line(error)}") from None


def _fitted(backbone: Any, name: str, weights: str, state: Tensors) -> Tensors:
    """Return the weights as timm's own model of ``backbone``'s sizes holds them, with the weights' own classes."""
    stem, head = state.get("patch_embed.proj.weight"), state.get("head.weight")
    channels = stem.shape[1] if stem is not None and stem.ndim == 4 else 3
    classes = 0 if head is None else len(head)
    size = backbone.patch_embed.img_size
    overlay = {"state_dict": state, "num_classes": classes, "input_size": (channels, *size)}
    sizes = {"img_size": size, "in_chans": backbone.patch_embed.proj.in_channels, "num_classes": classes}
    try:
        source = timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, **sizes)
    except Exception as error:
        if state.keys() & backbone.state_dict().keys():
            reason = f"is of another architecture than {name}: {_one_line(error)}"
        else:
            reason = f"is not in timm's naming: its first tensor is {next(iter(state))}"
        raise CheckpointError(f"{weights}: {reason}") from None
    return dict(source.state_dict())


def _one_line(error: Exception) -> str:
    """Return the first of an error's text; of PyTorch's list of faults, without its heading."""
    lines = str(error).splitlines()
    faults = lines[1:] if len(lines) > 1 and lines[0].endswith(":") else lines
    return textwrap.shorten(" ".join(faults) or type(error).__name__, 200, placeholder=" …")
