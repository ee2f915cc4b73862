"""Initialisation of a model from the weights of a run or of a file, for fine-tuning.

What has other sizes is resized where that means something: the position code of another grid or of a longer text,
patches of another size, images of other channels. A head of other classes, and what is bound to the number of tokens,
stay as built.
"""

from __future__ import annotations

import math
import os
from pathlib import Path

import torch
from timm.layers import resample_abs_pos_embed, resample_patch_embed
from timm.models.vision_transformer import VisionTransformer
from torch import Tensor, nn

from kattn_cli.errors import CheckpointError
from kattn_cli.kernels.precision import exact
from kattn_cli.models import AttentionModel
from kattn_cli.models.transfer import FILE_TYPES, Match, Tensors, Transfer, match, read_tensors, show, take_over
from kattn_cli.runs.weights import FOLDER, meant_weights, weights_path

CHECKPOINTS = (f"{FOLDER}/best.safetensors", f"{FOLDER}/last.safetensors")
"""Weights in a run's folder that can be begun from; the second in its first epoch."""

_OURS = "backbone."
_POSITIONS = "pos_embed"
_PLACES = "position"
_TOKENS = "embed.weight"
_CONVOLUTIONS = ("patch_embed.proj.weight", "patch_embed.0.0.weight")
"""The first of timm's vision transformer, and of our convolutional stem."""


def initialise_from(model: AttentionModel, source: str) -> Transfer:
    """Load into ``model`` what fits of ``source``, and return what became of each tensor.

    Args:
        source: a run's folder, whose best checkpoint is taken, or its last if it was stopped before it had one; or a
            file of weights, with names as a run's checkpoints have them or as timm has them.

    Raises:
        CheckpointError: if there is no such thing, it cannot be read, or it is of another architecture or vocabulary.
            ``model`` is then as before.
    """
    if fault := source_fault(source):
        raise CheckpointError(f"init_from: {fault}")
    file = weights_file(source)
    state = {key.removeprefix(_OURS): tensor for key, tensor in read_tensors(file).items()}
    ours = model.backbone.state_dict()
    fitted = _fitted(model.backbone, ours, state)
    matches = match(ours, fitted)
    _require_same_architecture(file, ours, fitted, matches)
    _require_same_vocabulary(file, ours, fitted)
    return take_over(model.backbone, matches, str(file), fitted, originals=state)


def source_fault(source: str) -> str:
    """Return what is wrong with ``source`` before anything of it is read, or an empty string."""
    path = Path(source)
    if path.is_dir():
        return _fault_of_folder(path)
    if os.path.lexists(path) and not path.exists():
        return f"{path} is a link to nothing, or to itself"
    if not path.exists():
        return f"there is no run or file {path}"
    if path.suffix not in FILE_TYPES:
        return f"expected a run's folder, or a file that ends in {', '.join(FILE_TYPES)}, not {path}"
    return ""


def _fault_of_folder(run: Path) -> str:
    file = weights_file(run)
    if file.is_file():
        return ""
    if file.is_dir():
        return f"{file} is a folder"
    if there := sorted(file.parent.glob("*.safetensors")):
        return f"{file} is missing; one of {', '.join(one.name for one in there)} can be named in its place"
    inside = sorted(found.parent.parent.name for found in run.glob(f"*/{CHECKPOINTS[1]}"))
    runs = f"; name one of the runs in it: {', '.join(inside)}" if inside else ""
    return f"{run} has no checkpoint, neither {' nor '.join(CHECKPOINTS)}{runs}"


def weights_file(source: str | Path) -> Path:
    """Return the file of weights that ``source`` means; see :func:`initialise_from`."""
    path = Path(source)
    return weights_path(path, meant_weights(path, "best")) if path.is_dir() else path


def _require_same_architecture(file: Path, ours: Tensors, theirs: Tensors, matches: dict[str, Match]) -> None:
    """Refuse weights of which fewer than half the blocks' tensors that both have by name fit.

    Tensors of another width may fit by chance: a temperature for each head, a bias as wide as a narrower MLP.

    Raises:
        CheckpointError: if fewer do.
    """
    shared = [key for key in ours if key.startswith("blocks.") and key in theirs]
    if not shared:
        first = next(iter(theirs))
        raise CheckpointError(f"{file}: is not in the naming of kattn or timm: its first tensor is {first}")
    unfit = [key for key in shared if matches[key].value is None]
    if 2 * len(unfit) > len(shared):
        fit = sum(one.value is not None for one in matches.values())
        example = f"{unfit[0]} is {show(ours[unfit[0]])} here and {show(theirs[unfit[0]])} there"
        raise CheckpointError(f"{file}: is of another architecture: {fit} of {len(ours)} tensors fit ({example})")


def _require_same_vocabulary(file: Path, ours: Tensors, theirs: Tensors) -> None:
    """Refuse weights of a vocabulary of another size.

    Raises:
        CheckpointError: if both embed tokens, and their numbers differ.
    """
    if _TOKENS in ours and _TOKENS in theirs and len(ours[_TOKENS]) != len(theirs[_TOKENS]):
        raise CheckpointError(
            f"{file}: has a vocabulary of {len(theirs[_TOKENS]):,} tokens, and the recipe's data one of "
            f"{len(ours[_TOKENS]):,}; data.vocabulary_from takes that of a run"
        )


def _fitted(backbone: nn.Module, ours: Tensors, theirs: Tensors) -> Tensors:
    """Return the weights with position code and first convolution in our sizes, where they can be resized."""
    fitted = dict(theirs)
    if isinstance(backbone, VisionTransformer) and _POSITIONS in ours and _POSITIONS in theirs:
        fitted[_POSITIONS] = _fit_positions(ours[_POSITIONS], list(backbone.patch_embed.grid_size), theirs)
    if _PLACES in ours and _PLACES in theirs and ours[_PLACES].shape[1:] == theirs[_PLACES].shape[1:]:
        fitted[_PLACES] = _fit_places(ours[_PLACES], theirs[_PLACES])
    for key in _CONVOLUTIONS:
        if key in ours and key in theirs:
            fitted[key] = _fit_convolution(ours[key], theirs[key])
    return fitted


def _fit_places(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return a text's position code: their first places, and ours as built beyond their length."""
    return torch.cat((theirs[: len(ours)], ours[len(theirs) :].to(theirs)))


def _fit_positions(ours: Tensor, grid: list[int], theirs: Tensors) -> Tensor:
    """Return their position code on our grid; before the patches their tokens first, then ours as built."""
    code = theirs[_POSITIONS]
    before = _tokens_before_patches(theirs)
    if before is None or code.shape[-1] != ours.shape[-1]:
        return code
    wanted = ours.shape[1] - math.prod(grid)
    kept = code[:, : min(before, wanted)]
    patches = resample_abs_pos_embed(code[:, before:], grid, num_prefix_tokens=0)
    return torch.cat((kept, ours[:, kept.shape[1] : wanted].to(kept), patches), 1)


def _tokens_before_patches(state: Tensors) -> int | None:
    """Return how many positions are not of patches, which form a square; None if they do not."""
    positions = state[_POSITIONS].shape[1]
    special = sum(state[key].shape[1] for key in ("cls_token", "dist_token", "reg_token") if key in state)
    for before in (special, 0):
        if positions > before and math.isqrt(positions - before) ** 2 == positions - before:
            return before
    return None


def _fit_convolution(ours: Tensor, theirs: Tensor) -> Tensor:
    """Return ``(width, channels, height, width)`` with our channels, as timm has it, and our size of patches."""
    if theirs.ndim != ours.ndim:
        return theirs
    channels, wanted = theirs.shape[1], ours.shape[1]
    if wanted == 1:
        # A grey image is the same value in each of their channels, so the sum gives the same output.
        theirs = exact(theirs).sum(1, keepdim=True)
    elif wanted != channels:
        # Repeated and scaled down, so that outputs keep their size.
        copies = math.ceil(wanted / channels)
        theirs = exact(theirs).repeat(1, copies, 1, 1)[:, :wanted] * (channels / wanted)
    return resample_patch_embed(theirs, list(ours.shape[-2:]))
