"""The one place that adapts kattn to the libraries of attacks, imported only where they are used."""

from __future__ import annotations

import logging
import os
import random
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from kattn_cli.attacks import AttackSettings, Norm
from kattn_cli.attacks.ball import Model
from kattn_cli.errors import KattnError

PYAUTOATTACK_NORMS: dict[Norm, str] = {"linf": "Linf", "l2": "L2", "l1": "L1"}
_SQUARE_TILES = 5


class _Wrapped(nn.Module):
    """Any model as the module that foolbox asks for; it does not own the model, so it moves and changes none."""

    def __init__(self, model: Model) -> None:
        super().__init__()
        self.call = (model,)

    def forward(self, images: Tensor) -> Tensor:
        return self.call[0](images)


def import_foolbox() -> Any:
    """Return foolbox, imported even where there is no git program, which it asks for without need."""
    os.environ.setdefault("GIT_PYTHON_REFRESH", "quiet")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import foolbox
    return foolbox


def foolbox_model(model: Model, device: torch.device) -> Any:
    """Return foolbox's view of the model."""
    return import_foolbox().PyTorchModel(_Wrapped(model).eval(), bounds=(0, 1), device=device)


def foolbox_criterion(labels: Tensor, settings: AttackSettings) -> Any:
    """Return the aim: another class than the labels, or the labels where targeted."""
    criteria = import_foolbox().criteria
    return criteria.TargetedMisclassification(labels) if settings.targeted else criteria.Misclassification(labels)


def seed_from(generator: torch.Generator) -> int:
    """Return a seed for a library that wants one, in [0, 2³¹)."""
    return int(torch.randint(2**31, (), generator=generator))


@contextmanager
def isolated(generator: torch.Generator) -> Iterator[int]:
    """Let a library use the global generators, seeded by the value yielded, and put them back; silence its warnings.

    pyautoattack also ends any tracing (a debugger's, a coverage tool's), which is put back too.
    """
    seed = seed_from(generator)
    log, tracer = logging.getLogger("auto-attack"), sys.gettrace()
    others, muted = (random.getstate(), np.random.get_state()), log.disabled
    gpus = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else ()
    with torch.random.fork_rng(devices=gpus), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        log.disabled = True
        torch.default_generator.manual_seed(seed)
        for gpu in gpus:
            torch.cuda.default_generators[gpu].manual_seed(seed)
        np.random.seed(seed)
        random.seed(seed)
        try:
            yield seed
        finally:
            random.setstate(others[0])
            np.random.set_state(others[1])
            log.disabled = muted
            sys.settrace(tracer)


def require_tiles(name: str, images: Tensor, settings: AttackSettings) -> None:
    """Refuse images that pyautoattack's Square cannot divide into tiles, as it does in ℓ2 and ℓ1.

    Raises:
        KattnError: if an image is under 5 pixels high or wide.
    """
    if settings.norm != "linf" and min(images.shape[-2:]) < _SQUARE_TILES:
        size = f"{images.shape[-2]} × {images.shape[-1]}"
        raise KattnError(f"{name} --norm {settings.norm}: needs images of 5 × 5 pixels, these have {size}")
