"""The trace and the yardstick of the pursuit, on what is known: by hand, and on planted matrices."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kattn_cli.attention.heads import split_projections
from kattn_cli.attention.rpc import RPCAttention
from kattn_cli.audit.items.pursuit.measure import planted, principal_component_pursuit, pursuit_trace, recovery
from kattn_cli.kernels.pursuit.equations import Pursuit, pap_steps


def _generator() -> torch.Generator:
    return torch.Generator().manual_seed(0)


def _normal(*shape: int) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=_generator())


@pytest.mark.parametrize("asymmetric", ["none", "iterate"])
def test_residuals_equal_those_of_the_mechanism(asymmetric: str) -> None:
    torch.manual_seed(0)
    module = RPCAttention(16, 2, seq_len=9, iterations=3, lambda_=0.1, asymmetric=asymmetric).double()  # type: ignore[arg-type]
    x = _normal(2, 9, 16)
    k, v = split_projections(module.kv(x), 2, 2)
    q = None if module.q is None else split_projections(module.q(x), 2, 1)[0]
    trace = pursuit_trace(k, v, module.pursuit, q)
    torch.testing.assert_close(trace.residual, module.residuals(x))
    counts = [(sparse != 0).sum((-2, -1)) / 72 for _, sparse, _ in pap_steps(k, v, module.pursuit, q=q)]
    torch.testing.assert_close(trace.nonzero_share.float(), torch.stack(counts))
    assert 0.5 < trace.nonzero_share[0].min() < 1


def test_planted_entries() -> None:
    """A quarter of 5 · 8 entries; each sample and head by its own mean."""
    k = _normal(2, 3, 5, 8) * torch.tensor([1.0, 10, 100])[:, None, None]
    corrupted, mask = planted(k, 0.25, 20, _generator())
    assert (mask.sum((-2, -1)) == 10).all()
    assert (corrupted[~mask] == k[~mask]).all()
    sizes = (corrupted - k) / k.abs().mean((-2, -1), keepdim=True)
    torch.testing.assert_close(sizes[mask].abs(), torch.full((60,), 20.0, dtype=torch.float64))
    assert 15 < (sizes[mask] > 0).sum() < 45
    assert not (mask[0] == mask[1]).all()
    again, _ = planted(k, 0.25, 20, _generator())
    assert (again == corrupted).all()


def test_planted_refuses_a_percentage() -> None:
    with pytest.raises(ValueError, match="share must be between 0 and 1, not 5"):
        planted(_normal(1, 1, 2, 2), 5, 1, _generator())


def test_recovery_by_hand() -> None:
    """Planted 2 of 4; found one of them and one other; found nothing; nothing planted."""
    mask = torch.tensor([[[True, True], [False, False]]] * 2 + [[[False, False], [False, False]]])[None]
    sparse = torch.tensor([[[1.0, 0], [-1, 0]], [[0, 0], [0, 0]], [[0, 0], [0, 2]]])[None]
    found = recovery(sparse, mask)
    nan = torch.nan
    torch.testing.assert_close(found.precision[0], torch.tensor([0.5, nan, 0.0]).double(), equal_nan=True)
    torch.testing.assert_close(found.recall[0], torch.tensor([0.5, 0.0, nan]).double(), equal_nan=True)
    torch.testing.assert_close(found.found_share[0], torch.tensor([0.5, 0.0, 0.25]).double())


@pytest.mark.parametrize(("size", "recall"), [(14.0, 0.0), (25.0, 1.0)])
def test_lambda_4_finds_nothing_below_16_means_at_first(size: float, recall: float) -> None:
    """τ = 4λ mean|k|, with the mean over the corrupted keys of ±1: here 16 · (1 + 0.01 size) or a little below."""
    k = _normal(1, 2, 40, 10).sign()
    corrupted, mask = planted(k, 0.01, size, _generator())
    ((_, sparse, _),) = pap_steps(corrupted, k, Pursuit(1, 4.0))
    found = recovery(sparse, mask)
    assert (found.recall == recall).all()
    assert (found.found_share == recall * 0.01).all()


def _low_rank_and_sparse() -> tuple[Tensor, Tensor, Tensor]:
    """Three matrices 60 × 40 of rank 3, of very different sizes, with 5 % of their entries corrupted."""
    low_rank = _normal(3, 1, 60, 3) @ torch.randn(3, 1, 3, 40, dtype=torch.float64, generator=_generator())
    low_rank = low_rank * torch.tensor([1e-3, 1.0, 1e3])[:, None, None, None]
    corrupted, mask = planted(low_rank, 0.05, 5, _generator())
    return corrupted, low_rank, mask


def test_convex_program_recovers_what_was_planted() -> None:
    corrupted, low_rank, mask = _low_rank_and_sparse()
    found_low_rank, sparse = principal_component_pursuit(corrupted)
    for found, true in ((found_low_rank, low_rank), (sparse, corrupted - low_rank)):
        assert ((found - true).norm(dim=(-2, -1)) < 1e-4 * true.norm(dim=(-2, -1))).all()
    assert ((sparse != 0) == mask).all()
    assert (torch.linalg.matrix_rank(found_low_rank, rtol=1e-4) == 3).all()


@pytest.mark.parametrize("lambda_", [None, 0.2, 0.6])
def test_no_pair_near_the_solution_is_better(lambda_: float | None) -> None:
    """The program is convex, so that the least value nearby is the least."""
    m = _normal(1, 1, 8, 6)
    low_rank, sparse = principal_component_pursuit(m, lambda_, tolerance=1e-12, iterations=20_000)

    def value(low: Tensor) -> Tensor:
        return torch.linalg.svdvals(low).sum() + (8**-0.5 if lambda_ is None else lambda_) * (m - low).abs().sum()

    generator = _generator()
    moves = [torch.randn(m.shape, dtype=torch.float64, generator=generator) for _ in range(200)]
    moves += [(m - low_rank) * (torch.rand(m.shape, generator=generator) < 0.2) for _ in range(50)]
    moves += [low_rank, sparse, *torch.eye(48, dtype=torch.float64).view(48, 1, 1, 8, 6)]
    least = min(value(low_rank + step * move) for move in moves for step in (-1e-2, -1e-4, 1e-4, 1e-2))
    assert value(low_rank) <= least + 1e-10


def test_tolerance_and_iterations_end_the_convex_program() -> None:
    corrupted, _, _ = _low_rank_and_sparse()
    gaps = []
    for tolerance, iterations in ((1e-2, 1000), (1e-6, 1000), (1e-6, 3)):
        low_rank, sparse = principal_component_pursuit(corrupted, tolerance=tolerance, iterations=iterations)
        gaps.append(((corrupted - low_rank - sparse).norm(dim=(-2, -1)) / corrupted.norm(dim=(-2, -1))).max())
    assert 1e-6 < gaps[0] <= 1e-2
    assert gaps[1] <= 1e-6
    assert gaps[2] > 1e-3


def test_lambda_decides_what_is_sparse() -> None:
    """λ = 0 puts all into S; a λ above 1 leaves it empty."""
    m = _normal(1, 1, 8, 6)
    low_rank, sparse = principal_component_pursuit(m, lambda_=0)
    assert low_rank.norm() < 1e-5 * m.norm()
    torch.testing.assert_close(sparse, m, rtol=0, atol=1e-4)
    low_rank, sparse = principal_component_pursuit(m, lambda_=1.1)
    assert (sparse == 0).all()
    torch.testing.assert_close(low_rank, m, rtol=0, atol=1e-4)
