"""Mixed precision: what a forward pass is computed in, and the scaling that float16 needs."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

import torch

DTYPES = {"bfloat16": torch.bfloat16, "float16": torch.float16}


def autocast(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """``float32``: nothing; else torch's autocast to ``bfloat16`` or ``float16``."""
    return torch.autocast(device.type, DTYPES[precision]) if precision in DTYPES else nullcontext()


def grad_scaler(precision: str, device: torch.device) -> torch.amp.GradScaler:
    """Scales the loss in float16, whose gradients would vanish; passes it elsewhere."""
    return torch.amp.GradScaler(device.type, enabled=precision == "float16")
