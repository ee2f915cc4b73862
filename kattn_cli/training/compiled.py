"""``torch.compile`` of a model that may keep scores on itself, save memory by checkpointing, and have peers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn


def compiled(model: nn.Module, *, checkpointing: bool) -> Callable[[Tensor], Tensor]:
    """The forward pass of ``model``, compiled when it is first called.

    With gradient checkpointing, mechanisms whose auxiliary loss is read off the module (Primal-Attention) would break
    the graph, and DDP's cutting of graphs into buckets does not know checkpointed regions.
    """
    settings: Any = torch._dynamo.config
    if checkpointing:
        settings.optimize_ddp = False
        if hasattr(settings, "skip_fwd_side_effects_in_bwd_under_checkpoint"):
            settings.skip_fwd_side_effects_in_bwd_under_checkpoint = True
    return torch.compile(model)
