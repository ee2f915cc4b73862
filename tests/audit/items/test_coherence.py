"""Cosines between the directions of different heads, and those of random ones against their closed form."""

from __future__ import annotations

import math

import pytest
import torch

from kattn_cli.audit.items.coherence.measure import coherence, coherence_null, subspace_gram


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def test_gram_is_the_cosine_of_each_pair() -> None:
    weight = torch.randn(6, 5, generator=_generator(), dtype=torch.float64)
    gram = subspace_gram(weight, 3)
    assert gram.shape == (3, 2, 3, 2)
    for a in range(6):
        for b in range(6):
            cosine = weight[a] @ weight[b] / (weight[a].norm() * weight[b].norm())
            torch.testing.assert_close(gram[a // 2, a % 2, b // 2, b % 2], cosine)


def test_coherence_by_hand() -> None:
    """Heads {x, x} and {−y, x − y}: between them |cosines| 0, 1/√2, 0, 1/√2; the pair within a head is not counted."""
    weight = torch.tensor([[1.0, 0], [2, 0], [0, -3], [1, -1]])
    found = coherence(subspace_gram(weight, 2))
    assert math.isclose(found.mean, 0.5**0.5 / 2, rel_tol=1e-6)
    assert math.isclose(found.largest, 0.5**0.5, rel_tol=1e-6)


def test_orthogonal_subspaces_have_none() -> None:
    assert coherence(subspace_gram(3 * torch.eye(8), 4)) == (0, 0)


def test_coherence_of_one_head_is_refused() -> None:
    with pytest.raises(ValueError, match="between different heads, and there is one"):
        coherence(subspace_gram(torch.eye(4), 1))


@pytest.mark.parametrize("dim", [2, 5, 48])
def test_null_has_the_mean_of_the_closed_form(dim: int) -> None:
    null = coherence_null(4, 12, dim, 200, _generator())
    expected = math.exp(math.lgamma(dim / 2) - math.lgamma((dim + 1) / 2)) / math.sqrt(math.pi)
    assert math.isclose(null.mean, expected, rel_tol=0.01)
    assert null.low < expected < null.high


def test_null_covers_95_percent_of_random_weights() -> None:
    null = coherence_null(4, 6, 24, 400, _generator())
    generator = torch.Generator().manual_seed(1)
    values = [coherence(subspace_gram(torch.randn(24, 24, generator=generator), 4)).mean for _ in range(400)]
    share = sum(null.low <= value <= null.high for value in values) / 400
    assert 0.91 < share < 0.985
