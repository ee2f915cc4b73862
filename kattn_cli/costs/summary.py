"""What a training will ask of a machine: parameters, operations, and an estimate of its memory."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks
from torch.utils.flop_counter import FlopCounterMode

ADAMW_MOMENTS = 2


@dataclass(frozen=True)
class Summary:
    """What a training needs.

    ``flops``: the matrix products of one sample's forward pass, a multiplication and an addition counting as two.
    Memory in bytes: ``weights``, ``gradients``, ``optimizer`` (AdamW's two moments), ``average`` (the EMA's weights),
    ``activations`` (what a forward pass over one shard of a batch keeps for the backward pass). What libraries allocate
    inside, and the data set itself, come on top.
    """

    parameters: int
    flops: int
    weights: int
    gradients: int
    optimizer: int
    average: int
    activations: int

    @property
    def memory(self) -> int:
        """Bytes of all of it."""
        return self.weights + self.gradients + self.optimizer + self.average + self.activations


def summarise(
    model: nn.Module, loss: Callable[[Any], Tensor], sample: Callable[[int], Any], *, shard: int, ema: bool
) -> Summary:
    """Return what training ``model`` needs; it lies on the meta device, so that nothing is computed.

    Args:
        loss: of a batch, a scalar.
        sample: returns so many inputs, on the meta device.
        shard: samples that one device sees at once.
    """
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        model.eval()
        model(sample(1))
    one, two = (_kept(model, loss, sample(count)) for count in (1, 2))
    weights = sum(parameter.numel() * parameter.element_size() for parameter in model.parameters())
    return Summary(
        parameters=sum(parameter.numel() for parameter in model.parameters()),
        flops=counter.get_total_flops(),
        weights=weights,
        gradients=weights,
        optimizer=ADAMW_MOMENTS * weights,
        average=weights if ema else 0,
        activations=one + (two - one) * (shard - 1),
    )


def _kept(model: nn.Module, loss: Callable[[Any], Tensor], inputs: Any) -> int:
    """Return the bytes kept for the backward pass of ``inputs``, without parameters."""
    own = {parameter.untyped_storage()._cdata for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage._cdata not in own:
            kept[storage._cdata] = tensor
        return tensor

    model.train()
    with saved_tensors_hooks(keep, lambda tensor: tensor):
        loss(inputs)
    return sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
