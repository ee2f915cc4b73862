"""The base class of all models: a backbone of blocks, whose mechanisms can be inspected."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from kattn_cli.models.experts import SparseExperts


class AttentionModel(nn.Module):
    """A model with a ``backbone`` that has ``blocks``, each with its mechanism as ``attn``."""

    backbone: Any

    @property
    def device(self) -> torch.device:
        """Where its parameters lie."""
        return next(self.parameters()).device

    def mechanisms(self) -> list[nn.Module]:
        """Return the attention module of each layer."""
        return [block.get_submodule("attn") for block in self.backbone.blocks]

    def experts(self) -> list[SparseExperts]:
        """Return the mixture of each layer; none of a model without."""
        return [module for module in self.modules() if isinstance(module, SparseExperts)]

    def set_grad_checkpointing(self, enabled: bool) -> None:
        """Trade time for memory: keep only each block's inputs, and compute the rest again in backward.

        Loss, gradients and auxiliary losses stay the same; dropout and stochastic depth draw the same numbers twice.
        """
        self.backbone.set_grad_checkpointing(enabled)

    def attention_inputs(self, inputs: Any) -> list[Tensor]:
        """Return what the attention of each layer receives for a batch of ``inputs``, ``(B, N, C)`` each."""
        return self.inputs_of(self.mechanisms(), inputs)

    def inputs_of(self, modules: Sequence[nn.Module], inputs: Any) -> list[Tensor]:
        """Return what each of ``modules`` receives for a batch of ``inputs``."""
        seen: list[Tensor] = []
        hooks = [module.register_forward_pre_hook(lambda _, args: seen.append(args[0])) for module in modules]
        try:
            self(inputs)
        finally:
            for hook in hooks:
                hook.remove()
        return seen


def auxiliary_loss(model: AttentionModel) -> Tensor:
    """Return what mechanisms and experts add to the loss, joined over layers as each kind asks; 0 where none does."""
    total = torch.zeros((), device=model.device)
    for reduction, terms in _auxiliary_terms(model):
        joined = torch.stack(terms)
        total = total + (joined.mean() if reduction == "mean" else joined.sum())
    return total


def _auxiliary_terms(model: AttentionModel) -> Iterator[tuple[str, list[Tensor]]]:
    own = [module for module in model.mechanisms() if hasattr(module, "auxiliary_loss")]
    with_term: list[Any] = [*own, *model.experts()]
    reductions = [getattr(module, "layer_reduction", "sum") for module in with_term]
    # Sorted, so that terms are always added in the same order.
    for reduction in sorted(set(reductions)):
        chosen = zip(with_term, reductions, strict=True)
        yield reduction, [module.auxiliary_loss() for module, its in chosen if its == reduction]
