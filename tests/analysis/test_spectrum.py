"""Spectra of matrices whose spectra are known."""

from __future__ import annotations

import torch

from kattn_cli.analysis.spectrum import explained_variance, singular_values, spectrum


def test_rank_is_found_exactly() -> None:
    torch.manual_seed(0)
    matrix = torch.randn(1, 1, 9, 3, dtype=torch.float64) @ torch.randn(1, 1, 3, 9, dtype=torch.float64)
    values = singular_values(matrix)
    assert int((values > 1e-10).sum()) == 3
    torch.testing.assert_close(explained_variance(values)[..., 2:], torch.ones(1, 1, 7, dtype=torch.float64))


def test_diagonal_by_hand() -> None:
    """σ = 4, 3, 0: explained 16/25, 25/25, 25/25."""
    values = singular_values(torch.diag(torch.tensor([3.0, 0.0, -4.0]))[None, None])
    assert values.flatten().tolist() == [4, 3, 0]
    torch.testing.assert_close(explained_variance(values).flatten(), torch.tensor([0.64, 1.0, 1.0]).double())


def test_mean_and_deviation_over_inputs() -> None:
    values = torch.tensor([[[2.0, 1.0]], [[4.0, 1.0]]]).double()
    found = spectrum(values)
    assert found.values.tolist() == [[3.0, 1.0]]
    torch.testing.assert_close(found.values_std, torch.tensor([[2**0.5, 0.0]]).double())
    assert spectrum(values[:1]).values_std.tolist() == [[0.0, 0.0]]
