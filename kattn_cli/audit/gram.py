"""The Gram matrix of the keys in the feature space in which softmax attention is said to do kernel PCA.

Source: RPC-Attention, "Unveiling the Hidden Structure of Self-Attention via Kernel PCA", §2.1 and Remark 1.
N: tokens, d: head width. With ``g(x) = Σ_j κ(x, k_j)``, the features are ``φ(x) = ψ(x) / g(x)`` for ``κ = ψᵀψ``.

Keys of norm 30 put κ beyond float64, so all is computed from ``log κ``, in float64.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from torch import Tensor

Matrix = TypeVar("Matrix", bound=Any)
LogKernel = Callable[[Tensor, Tensor], Tensor]
"""``(…, M, d)`` and ``(…, N, d)`` to the logarithms of a non-negative kernel, ``(…, M, N)``."""


def log_exponential(x: Tensor, y: Tensor) -> Tensor:
    """Return ``log κ(x, y) = xᵀy / √d``, the kernel of softmax attention."""
    return x @ y.mT / math.sqrt(x.shape[-1])


class NormalisedGram(NamedTuple):
    """``κ_φ(k_i, k_j) = κ(k_i, k_j) / (g(k_i) g(k_j))`` of each head; ``scaled`` holds for keys of any size."""

    scaled: Tensor
    """``(…, N, N)``: ``K_φ`` over its largest entry."""
    log_scale: Tensor
    """``(…,)``: the logarithm of that entry."""
    log_normaliser: Tensor
    """``(…, N)``: ``log g(k_j)``."""

    @property
    def gram(self) -> Tensor:
        """Return ``K_φ`` ``(…, N, N)``; 0 where an entry is below float64."""
        return times_exp(self.scaled, self.log_scale[..., None, None])

    @property
    def normaliser(self) -> Tensor:
        """Return ``g(k_j)`` ``(…, N)``; infinite above float64."""
        return self.log_normaliser.exp()


def normalised_gram(k: Tensor, log_kernel: LogKernel = log_exponential) -> NormalisedGram:
    """Return ``K_φ`` and ``g`` of keys ``(…, N, d)``."""
    k = k.double()
    log_kappa = log_kernel(k, k)
    log_g = log_kappa.logsumexp(-1)
    log_gram = log_kappa - log_g[..., :, None] - log_g[..., None, :]
    log_scale = log_gram.amax((-2, -1))
    return NormalisedGram((log_gram - log_scale[..., None, None]).exp(), log_scale, log_g)


def times_exp(x: Tensor, log_factor: Tensor) -> Tensor:
    """Return ``x · exp(log_factor)``, where the factor alone may be beyond float64."""
    return x.sign() * (x.abs().log() + log_factor).exp()


def centred(gram: Matrix) -> Matrix:
    """Return ``K − 1_N K − K 1_N + 1_N K 1_N``, every entry of ``1_N`` being 1/N: the Gram matrix of centred features.

    An array or a tensor ``(…, N, N)``, and one of the same kind back.
    """
    columns = gram.mean(axis=-2, keepdims=True)
    return gram - columns - gram.mean(axis=-1, keepdims=True) + columns.mean(axis=-1, keepdims=True)
