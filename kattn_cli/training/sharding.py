"""Parallel training of one model: whole in each process (DDP), or split over them (FSDP2)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Literal

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import FSDPModule, fully_shard
from torch.distributed.tensor import DTensor, distribute_tensor
from torch.nn.parallel import DistributedDataParallel

from kattn_cli.errors import TrainingError
from kattn_cli.models import AttentionModel
from kattn_cli.training.distributed import World

State = dict[str, Any]


def parallelise(model: AttentionModel, kind: Literal["ddp", "fsdp"], world: World, device: torch.device) -> nn.Module:
    """Return what to call for the forward pass, so that backward averages gradients over the processes.

    All begin with the first process's weights. ``fsdp`` changes ``model`` itself and its parameters, so the optimizer
    must be built afterwards; every forward pass is then a common one (but see :func:`whole`).

    Raises:
        TrainingError: if FSDP cannot split one of the parameters.
    """
    if world.size == 1:
        return model
    if kind == "ddp":
        return DistributedDataParallel(model)
    _refuse_scalars(model)
    with torch.no_grad():
        for tensor in (*model.parameters(), *model.buffers()):
            dense = tensor.contiguous()
            dist.broadcast(dense, 0)
            tensor.copy_(dense)
    mesh = init_device_mesh(device.type, (world.size,))
    # Blocks before the whole, so that each gathers its weights only when its turn comes.
    for block in model.backbone.blocks:
        fully_shard(block, mesh=mesh, reshard_after_forward=_reshards(block))
    fully_shard(model, mesh=mesh, reshard_after_forward=_reshards(model))
    if device.type == "cpu":
        _divide_sums(model)
    return model


def _divide_sums(model: nn.Module) -> None:
    """Make FSDP average gradients by dividing sums: asked for a mean, gloo of torch 2.8 gives the sum."""
    for piece in model.modules():
        if isinstance(piece, FSDPModule):
            piece.set_force_sum_reduction_for_comms(True)


def accumulating(parallel: nn.Module, last: bool) -> AbstractContextManager[None]:
    """Return the context of one part of an accumulated step: DDP exchanges gradients in the ``last`` alone.

    FSDP exchanges them in each part, since it would otherwise have to keep them whole.
    """
    if isinstance(parallel, DistributedDataParallel) and not last:
        return parallel.no_sync()
    return nullcontext()


@contextmanager
def whole(model: AttentionModel) -> Iterator[None]:
    """Let forward passes without gradients run on each process alone, which may then see any number of batches.

    All processes enter together. With FSDP, each holds all weights in the meantime.
    """
    pieces = [module for module in model.modules() if isinstance(module, FSDPModule)]
    for piece in pieces:
        piece.unshard()
        piece.set_reshard_after_forward(False, recurse=False)
    try:
        yield
    finally:
        for piece in pieces:
            piece.set_reshard_after_forward(_reshards(piece), recurse=False)
            piece.reshard()


def clip(model: nn.Module, max_norm: float) -> Tensor:
    """Scale the gradients to a norm of at most ``max_norm``, and return what it was, of all pieces together."""
    norm = nn.utils.get_total_norm([each.grad for each in model.parameters() if each.grad is not None])
    norm = norm.full_tensor() if isinstance(norm, DTensor) else norm  # first, since torch 2.8 adds its ε to each piece
    nn.utils.clip_grads_with_norm_(model.parameters(), max_norm, norm)
    return norm


def full_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> tuple[State, State]:
    """Return both state dicts, whole and on the CPU, in the first process; the others must call it too, for {}.

    The same in form however the model is trained: parameters of the optimizer by their number, as ever. Tensors that
    are whole and on the CPU already are not copied.
    """
    main = not dist.is_initialized() or dist.get_rank() == 0
    states = _whole(model.state_dict(), main), _whole(optimizer.state_dict(), main)
    return states if main else ({}, {})


def load_full_state(
    model: nn.Module, optimizer: torch.optim.Optimizer, model_state: State, optimizer_state: State
) -> None:
    """Load what :func:`full_state` returned, of DDP, FSDP or one process alike; every process must have it.

    The optimizer keeps its own weight decay, which a recipe may have changed.
    """
    decays = [group["weight_decay"] for group in optimizer.param_groups]
    own = model.state_dict()
    model.load_state_dict({name: _split_as(own.get(name), value) for name, value in model_state.items()})
    parameters = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    per_parameter = {
        index: {key: _split_as(parameters[index], value) for key, value in entries.items()}
        for index, entries in optimizer_state["state"].items()
    }
    optimizer.load_state_dict({**optimizer_state, "state": per_parameter})
    for group, decay in zip(optimizer.param_groups, decays, strict=True):
        group["weight_decay"] = decay


def _reshards(module: Any) -> bool:
    """Return whether FSDP may free the gathered weights after the forward pass: auxiliary losses use them later."""
    return not isinstance(module, AttentionModel) and not hasattr(module.attn, "auxiliary_loss")


def _refuse_scalars(model: nn.Module) -> None:
    """Refuse parameters of no dimension, which FSDP cannot split."""
    for name, parameter in model.named_parameters():
        if parameter.ndim == 0:
            raise TrainingError(
                f"train.parallel: fsdp cannot split the parameter {name}, a single number; give it the shape (1,), "
                "or use ddp"
            )


def _whole(value: Any, kept: bool) -> Any:
    """Gather the tensors anywhere in ``value`` from all processes to the CPU; None in their place if not ``kept``."""
    if isinstance(value, dict):
        return {key: _whole(entry, kept) for key, entry in value.items()}
    if isinstance(value, DTensor):
        value = value.full_tensor()
    if isinstance(value, Tensor):
        return value.detach().cpu() if kept else None
    return value


def _split_as(parameter: Tensor | None, value: Any) -> Any:
    """Return this process's part of ``value`` if ``parameter`` is split and of its shape, else ``value`` itself."""
    if not isinstance(parameter, DTensor) or not isinstance(value, Tensor) or value.shape != parameter.shape:
        return value
    return distribute_tensor(
        value.to(parameter.device), parameter.device_mesh, parameter.placements, src_data_rank=None
    )
