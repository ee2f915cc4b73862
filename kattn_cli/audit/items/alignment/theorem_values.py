"""The values that would make softmax attention project φ(q) onto the principal axes of the keys.

Source: RPC-Attention, "Unveiling the Hidden Structure of Self-Attention via Kernel PCA", Theorem 1, eq. 7–11.
N: tokens, d: head width, D: number of axes.

``K̃_φ a_d = λ_d N a_d`` gives the axes ``u_d = Σ_j a_dj φ̃(k_j)``, scaled to norm 1 by ``a_dᵀ K̃_φ a_d = 1``, and
``v_dj = a_dj / g_j − (1/N) Σ_j' a_dj' / g_j``. The rows of K̃_φ sum to 0, hence so does an a_d of ``λ_d > 0``, and the
second term is 0: Theorem 1's values are ``a_dj / g_j``.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from kattn_cli.audit.gram import LogKernel, centred, log_exponential, normalised_gram, times_exp


class TheoremValues(NamedTuple):
    """Columns in order of falling eigenvalue, each with a sign of its own; 0 beyond the rank (Remark 2)."""

    values: Tensor
    """``v_dj`` ``(…, N, D)``; 0 where it is below float64."""
    eigenvalues: Tensor
    """``λ_d`` ``(…, D)``, of ``K̃_φ / N``; 0 beyond the rank, and where it is below float64."""
    coefficients: Tensor
    """``a_dj`` ``(…, N, D)``; infinite above float64."""
    scaled_values: Tensor
    """``values`` times one number per head, finite for keys of any size: what scale-free comparisons should take."""


def theorem_values(k: Tensor, width: int, log_kernel: LogKernel = log_exponential) -> TheoremValues:
    """Return the values on the first ``width`` axes of keys ``(…, N, d)``, in float64.

    Axes with an eigenvalue below N times float64's precision, relative to the largest, count as beyond the rank.
    Raises ``ValueError`` for a ``width`` above N: there are no more axes than tokens (Remark 2).
    """
    n = k.shape[-2]
    if width > n:
        raise ValueError(f"{n} keys have at most {n} principal axes, not {width}")
    gram = normalised_gram(k, log_kernel)
    spectrum = torch.linalg.eigh(centred(gram.scaled))
    eigenvalues = spectrum.eigenvalues.flip(-1)
    within = (eigenvalues > n * torch.finfo(torch.float64).eps * eigenvalues[..., :1])[..., :width]
    eigenvalues = eigenvalues[..., :width].where(within, 0.0)
    lengths = eigenvalues.where(within, 1.0).sqrt()
    scaled_a = (spectrum.eigenvectors.flip(-1)[..., :width] / lengths[..., None, :]).where(within[..., None, :], 0.0)

    log_g = gram.log_normaliser
    smallest = log_g.amin(-1)
    scaled_v = (scaled_a - scaled_a.mean(-2, keepdim=True)) * (smallest[..., None] - log_g).exp()[..., None]
    log_a = -gram.log_scale / 2
    return TheoremValues(
        values=times_exp(scaled_v, (log_a - smallest)[..., None, None]),
        eigenvalues=times_exp(eigenvalues, gram.log_scale[..., None]) / n,
        coefficients=times_exp(scaled_a, log_a[..., None, None]),
        scaled_values=scaled_v,
    )
