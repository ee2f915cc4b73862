"""Theorem 1 of ToST, and that TSSA is a step down its bound."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kattn_cli.audit.items.compression.measure import coding_rate, variational_coding_rate
from kattn_cli.kernels.tssa.operator import tssa


def _orthogonal(*shape: int) -> Tensor:
    return torch.linalg.qr(torch.randn(shape, dtype=torch.float64)).Q


@pytest.fixture
def tokens() -> tuple[Tensor, Tensor]:
    """Z, 11 tokens of width 6 in two samples, and their membership in 3 groups."""
    torch.manual_seed(0)
    return torch.randn(2, 11, 6, dtype=torch.float64), torch.randn(2, 3, 11, dtype=torch.float64).softmax(1)


def test_bound_holds_for_random_orthogonal_bases(tokens: tuple[Tensor, Tensor]) -> None:
    z, membership = tokens
    rate = coding_rate(z, membership)
    for _ in range(100):
        bound = variational_coding_rate(z[:, None] @ _orthogonal(2, 3, 6, 6), membership)
        assert (bound > rate).all()


def test_bound_is_tight_in_the_eigenbasis(tokens: tuple[Tensor, Tensor]) -> None:
    z, membership = tokens
    covariances = z.mT[:, None] @ (membership[..., None] * z[:, None])
    bases = torch.linalg.eigh(covariances).eigenvectors
    bound = variational_coding_rate(z[:, None] @ bases, membership)
    torch.testing.assert_close(bound, coding_rate(z, membership), rtol=1e-12, atol=1e-12)


def test_rate_by_hand() -> None:
    """One group, tokens (1, 0), (0, 2): eigenvalues ½ and 2, so ½ (log 1.5 + log 3)."""
    z = torch.tensor([[1.0, 0.0], [0.0, 2.0]], dtype=torch.float64)
    expected = (torch.tensor(1.5).double().log() + torch.tensor(3.0).double().log()) / 2
    torch.testing.assert_close(coding_rate(z, torch.ones(1, 2, dtype=torch.float64)), expected)


def test_tssa_is_the_gradient_step_on_the_bound() -> None:
    """Eq. 6–7: for a membership that is held fixed, ``−n ∇R^var = −(w · Π · D)``."""
    torch.manual_seed(0)
    w = torch.randn(2, 3, 11, 4, dtype=torch.float64, requires_grad=True)
    eta = torch.ones(3, dtype=torch.float64)
    membership = torch.nn.functional.normalize(w.detach(), dim=-2).square().sum(-1).softmax(1)
    (gradient,) = torch.autograd.grad(variational_coding_rate(w, membership).sum(), w)
    torch.testing.assert_close(tssa(w, eta), -11 * gradient, rtol=1e-7, atol=1e-9)
