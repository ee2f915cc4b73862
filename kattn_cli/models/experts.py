"""A sparse mixture of experts, which replaces a block's MLP: a router sends each token to a few of many MLPs.

Sources: Shazeer et al. 2017, "Outrageously Large Neural Networks" (top-k gating); Fedus et al. 2021, "Switch
Transformers", §2.1–2.2 (capacity, balancing loss, router in float32). T: tokens, E: experts, k: experts of a token.

What is ours: no noise in the router; gates are the router's probabilities made to add up to 1 over a token's k experts,
which is Shazeer's softmax over the k greatest (with k = 1 they are left as they are, as Switch has them, or the router
would learn nothing from the task). Places of an expert are given in the order of the tokens, so that no token loses
one to a later token. **The capacity binds in training alone**: when evaluated or decoding, nothing is turned away, and
what a token becomes depends on no token but those that attention lets it see.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from timm.layers import Mlp
from torch import Tensor, nn

from kattn_cli.kernels.precision import exact, full_precision


@dataclass(frozen=True)
class Load:
    """The choices of one layer's router, and its probability for each expert, ``(E,)`` float64 on the CPU.

    ``asked``: tokens sent to it. ``dropped``: of these, the ones that found no place. ``probability``: that the router
    gave it, mean over the tokens.
    """

    asked: Tensor
    dropped: Tensor
    probability: Tensor


class SparseExperts(nn.Module):
    """``Σ g_e(x) · MLP_e(x)`` over the ``top`` experts of each token. ``(B, N, dim)`` to the same.

    Args:
        hidden: width of each expert.
        count, top: how many experts there are, and a token goes to.
        capacity: how many times its even share, ``T · top / count``, an expert takes in training; a token beyond that
            gets nothing of it, and is counted. None: all of them.
        balance: weight of :meth:`auxiliary_loss`.
    """

    takes_mask: ClassVar[bool] = True

    def __init__(
        self, dim: int, hidden: int, *, count: int, top: int, capacity: float | None = None, balance: float = 0.0
    ) -> None:
        super().__init__()
        self.count, self.top, self.capacity, self.balance = count, top, capacity, balance
        self.router = nn.Linear(dim, count, bias=False)
        self.experts = nn.ModuleList(Mlp(dim, hidden) for _ in range(count))
        self.counting = True
        """Whether forward passes count towards :meth:`take_load`."""
        self._loads: dict[bool, Tensor] = {}
        self._unbalance: Tensor | None = None

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the mixture's output ``(B, N, dim)``.

        ``mask``: ``(B, N)``, True where there is a token; padding goes to no expert and comes out as 0.
        """
        tokens = x.flatten(0, 1) if mask is None else x[mask]
        probabilities = self.probabilities(tokens)
        gates, chosen = probabilities.topk(self.top)
        if self.top > 1:
            gates = gates / gates.sum(-1, keepdim=True)
        # Stable, so that an expert's places go to its tokens in their order.
        order = chosen.flatten().argsort(stable=True)
        asked = chosen.flatten().bincount(minlength=self.count)
        places = self.places(len(tokens))
        kept = [rows[:places] for rows in order.split(asked.tolist())]
        fed = torch.cat([expert(tokens[rows // self.top]) for expert, rows in zip(self.experts, kept, strict=True)])
        by_choice = fed.new_zeros(chosen.numel(), x.shape[-1]).index_copy(0, torch.cat(kept), fed)
        out = (by_choice.unflatten(0, chosen.shape) * gates[..., None]).sum(1).to(fed.dtype)
        self._note(asked, places, probabilities)
        return out.view_as(x) if mask is None else out.new_zeros(x.shape).masked_scatter(mask[..., None], out)

    def probabilities(self, tokens: Tensor) -> Tensor:
        """Return the router's probability of each expert for ``(T, dim)`` tokens, ``(T, E)``, in float32 or better."""
        return _probabilities(tokens, self.router.weight)

    def places(self, tokens: int) -> int:
        """Return how many of ``tokens`` an expert takes."""
        if self.capacity is None or not self.training:
            return tokens
        # Rounded first, so that a product such as 3.0000000000000004 does not give a place more.
        return math.ceil(round(self.capacity * tokens * self.top / self.count, 9))

    def auxiliary_loss(self) -> Tensor:
        """Return ``balance · E · Σ_e f_e P_e`` of the last forward pass (Switch, eq. 4); ``balance`` for an even load.

        f: share of the choices that went to an expert, P: mean of its probability.

        Raises:
            RuntimeError: before the first forward pass.
        """
        if self._unbalance is None:
            raise RuntimeError("experts: the load is that of a forward pass, and there was none yet")
        return self.balance * self._unbalance

    def take_load(self, training: bool) -> Load | None:
        """Return what was asked since the last call, in ``train`` or in ``eval`` mode; None for nothing."""
        noted = self._loads.pop(training, None)
        if noted is None or not noted[0].any():
            return None
        asked, dropped, probability = noted.cpu()
        return Load(asked, dropped, probability / (asked.sum() / self.top))

    def _note(self, asked: Tensor, places: int, probabilities: Tensor) -> None:
        seen = max(len(probabilities), 1)
        # Counts carry no gradient: the router learns through its probabilities alone.
        shares = asked.to(probabilities.dtype) / (seen * self.top)
        self._unbalance = self.count * (shares * probabilities.sum(0) / seen).sum()
        if self.counting:
            rows = (asked, (asked - places).clamp(min=0), probabilities.detach().sum(0))
            noted = torch.stack([row.double() for row in rows])
            before = self._loads.get(self.training)
            self._loads[self.training] = noted if before is None else before + noted

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what earlier forward passes left: part of that belongs to a graph."""
        return {**self.__dict__, "_unbalance": None, "_loads": {}}


@full_precision
def _probabilities(tokens: Tensor, weight: Tensor) -> Tensor:
    """Return the router's softmax, never in half precision, in which small differences of logits are lost."""
    return nn.functional.linear(exact(tokens), exact(weight)).softmax(-1)


@dataclass(frozen=True)
class ExpertLoad:
    """What was asked of each expert of one layer.

    Args:
        asked: choices that fell on it; a token makes several.
        dropped: of these, the ones that found no place.
        probability: that the router gave it, mean over the tokens.
    """

    asked: Sequence[float]
    dropped: Sequence[float]
    probability: Sequence[float]

    @property
    def shares(self) -> list[float]:
        """The share of all choices of each expert; even ones are 1 / count. All 0 where nothing was asked."""
        total = sum(self.asked)
        return [asked / total if total else 0.0 for asked in self.asked]

    @property
    def dropped_shares(self) -> list[float]:
        """The share of each expert's choices that found no place."""
        return [lost / asked if asked else 0.0 for asked, lost in zip(self.asked, self.dropped, strict=True)]

    @property
    def dropped_share(self) -> float:
        """The share of all choices that found no place."""
        total = sum(self.asked)
        return sum(self.dropped) / total if total else 0.0

    @property
    def evenness(self) -> float:
        """Entropy of the shares over that of even ones: 1 for an even load, 0 where one expert has everything."""
        # p log p tends to 0 with p, where log itself has no value.
        shares = np.array([share for share in self.shares if share])
        if len(self.asked) == 1:
            return 1.0
        return float(-(shares * np.log(shares)).sum() / np.log(len(self.asked)))
