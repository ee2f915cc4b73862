"""The projection error of kernel PCA that self-attention is said to minimise.

Source: RPC-Attention, "Unveiling the Hidden Structure of Self-Attention via Kernel PCA", eq. 13, §2.2.1.
B: batch, H: heads, N: tokens, d: head width.

``reference`` is what the authors' program logs: it standardises q and k, takes the normaliser of the softmax from
key 0, and leaves the 1/√d out of the exponents, but not out of the attention. It standardises them here, inside the
measure, whether or not the model attended so: h is then not what the model computed. Of a model that does attend with
standardised q and k (``standardise: true`` of softmax and symmetric attention, which the authors' program measures),
standardising again changes nothing, and both terms are the model's own.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Literal, NamedTuple, get_args

from torch import Tensor

from kattn_cli.audit.view import View, softmax_layers
from kattn_cli.kernels.softmax import softmax_matrix, standardised
from kattn_cli.runs.csv_rows import Row

Convention = Literal["paper", "reference"]
CONVENTIONS: tuple[Convention, ...] = get_args(Convention)


class ProjectionError(NamedTuple):
    """Both terms of ``J_proj``, ``(B, H, N)`` each: they can differ by orders of magnitude."""

    feature: Tensor
    """``‖φ(q_i)‖²``."""
    projection: Tensor
    """``‖h_i‖²``."""

    def logged(self) -> Tensor:
        """Return ``log J_proj`` over batch, heads and tokens; not a number where ``J_proj`` is negative."""
        return (self.feature - self.projection).mean().log()


def projection_error(q: Tensor, k: Tensor, v: Tensor, convention: Convention = "paper") -> ProjectionError:
    """Return ``‖φ(q_i)‖²`` and ``‖h_i‖²``, h the attention's output, for queries, keys and values ``(B, H, N, d)``."""
    if convention == "reference":
        q, k = standardised(q), standardised(k)
        attention = softmax_matrix(q, k)
        to_first_key = (q * k[..., :1, :]).sum(-1)
        log_feature = q.square().sum(-1) + 2 * attention[..., 0].log() - 2 * to_first_key
        return ProjectionError(log_feature.exp(), (attention @ v).square().sum(-1))
    scale = math.sqrt(q.shape[-1])
    return kernel_projection_error(q.square().sum(-1) / scale, q @ k.mT / scale, v)


def kernel_projection_error(log_self: Tensor, log_cross: Tensor, v: Tensor) -> ProjectionError:
    """Return both of any kernel: ``log κ(q_i, q_i)`` ``(…, N)``, ``log κ(q_i, k_j)`` ``(…, N, N)``, v ``(…, N, D)``."""
    log_feature = log_self - 2 * log_cross.logsumexp(-1)
    return ProjectionError(log_feature.exp(), (log_cross.softmax(-1) @ v).square().sum(-1))


def projection_errors(view: View) -> Iterator[Row]:
    """Measure both terms of J_proj (eq. 13) and their difference, means over inputs and tokens."""
    for layer, q, k, v in softmax_layers(view):
        for convention in CONVENTIONS:
            error = projection_error(q, k, v, convention)
            for head in range(q.shape[1]):
                feature, projection = (term[:, head].mean().item() for term in error)
                yield {
                    "epoch": view.epoch,
                    "layer": layer,
                    "head": head,
                    "convention": convention,
                    "feature_norm": feature,
                    "projection_norm": projection,
                    "j_proj": feature - projection,
                    "inputs": len(q),
                }
