"""Primal scores, feature maps and the objective equal their equations token by token."""

from __future__ import annotations

import pytest
import torch
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.primal import equations as module
from kattn_cli.kernels.primal.equations import (
    Convention,
    cosine_features,
    exp_features,
    exp_features_naive,
    ksvd_objective,
    ksvd_objective_of,
    primal_scores,
    primal_scores_naive,
    running_direction,
    running_mean,
    running_sum,
    sampled_rows,
    sampled_tokens,
)


@pytest.mark.parametrize("size", SIZES)
def test_data_dependent_scores_equal_naive(size: tuple[int, ...]) -> None:
    b, h, _, d = size
    compare(
        lambda z, x, w, mask: primal_scores(cosine_features(z), x, w),
        lambda z, x, w, mask: primal_scores_naive(z / z.norm(dim=-1, keepdim=True), x, w),
        draw(*size),
        draw(b, h, 7, d),
        draw(h, 7, 3),
        mask=None,
    )


@pytest.mark.parametrize("size", SIZES)
def test_data_independent_scores_equal_naive(size: tuple[int, ...]) -> None:
    compare(
        lambda z, w, mask: primal_scores(cosine_features(z), None, w),
        lambda z, w, mask: primal_scores_naive(z / z.norm(dim=-1, keepdim=True), None, w),
        draw(*size),
        draw(size[1], size[3], 3),
        mask=None,
    )


@pytest.mark.parametrize("size", [(2, 2, 1, 4), (2, 3, 7, 5)])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize("side", [0, 1])
def test_exp_features_equal_naive(size: tuple[int, ...], causal: bool, masked: bool, side: int) -> None:
    directions = draw(6, size[-1])
    compare(
        lambda q, k, mask: exp_features(q, k, directions, causal, mask)[side],
        lambda q, k, mask: exp_features_naive(q, k, directions, causal, mask)[side],
        draw(*size),
        draw(*size),
        mask=padding(size[2]) if masked else None,
    )


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("deviation", [1.0, 1.5, 2.0])
def test_exp_features_keep_their_range_in_float32(causal: bool, deviation: float) -> None:
    """g alone would be zero from a deviation of 2 on, and the scores with it."""
    q, k = (deviation * draw(1, 2, 33, 64) for _ in range(2))
    directions = draw(64, 64)
    expected = exp_features(q, k, directions, causal)
    found = exp_features(q.float(), k.float(), directions.float(), causal)
    assert expected[0].norm(dim=-1).max() > 1e-3
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.double(), other, rtol=1e-2, atol=1e-2)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("masked", [False, True])
def test_running_mean_equals_a_loop(size: tuple[int, ...], masked: bool) -> None:
    def naive(z: Tensor, mask: Tensor | None) -> Tensor:
        out = torch.zeros_like(z)
        for b in range(size[0]):
            there = [t for t in range(size[2]) if mask is None or mask[b, t]]
            for count, t in enumerate(there, 1):
                out[b, :, t] = z[b, :, there[:count]].mean(1)
        return out

    compare(running_mean, naive, draw(*size), mask=padding(size[2]) if masked else None)


@pytest.mark.parametrize("convention", ["paper", "reference"])
def test_objective_equals_a_loop(convention: str) -> None:
    e, r, w_e, w_r = draw(2, 3, 7, 4), draw(2, 3, 7, 4), draw(3, 5, 4), draw(3, 5, 4)
    regulariser, mask = draw(3, 4).abs(), padding(7)
    expected = []
    for b in range(2):
        heads = []
        for h in range(3):
            diagonal = torch.diag(regulariser[h])
            terms = []
            for t in range(7):
                for score in (e[b, h, t], r[b, h, t]):
                    if convention == "paper" and mask[b, t]:
                        terms.append(score @ diagonal @ score / 2)  # eq. 11
                    elif convention == "reference":
                        terms.append((diagonal @ score).square().sum() / 2 / 7)
            heads.append(sum(terms) - torch.trace(w_e[h].T @ w_r[h]))
        expected.append(sum(heads) / 3)
    found = ksvd_objective(e, r, w_e, w_r, regulariser, convention, mask)  # type: ignore[arg-type]
    torch.testing.assert_close(found, torch.stack(expected), rtol=1e-9, atol=1e-9)  # type: ignore[arg-type]
    counted = e.new_ones(2, 7) if convention == "reference" else mask.double()
    energy = (torch.cat((e, r), -1).square() * counted[:, None, :, None]).sum(-2)
    same = ksvd_objective_of(energy, 7, w_e, w_r, regulariser, convention)  # type: ignore[arg-type]
    torch.testing.assert_close(same, found, rtol=1e-9, atol=1e-9)


def test_rows_are_sampled_among_the_tokens() -> None:
    mask = padding(43)
    found = sampled_tokens(mask, 9)
    for b in range(2):
        there = mask[b].nonzero()[:, 0]
        assert found[b].tolist() == there[sampled_rows(len(there), 9, "paper")].tolist()


@pytest.mark.parametrize("tokens", [1, 7, 32, 33, 64, 63, 4097])
def test_running_sum_is_the_cumulative_sum(tokens: int) -> None:
    compare(lambda z, mask: running_sum(z), lambda z, mask: z.cumsum(-2), draw(2, 3, tokens, 2), mask=None)


def test_running_direction_is_a_multiple_of_the_mean(monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum; the mean itself by slow operators, and in float16, whose range a sum leaves."""
    z, mask = draw(2, 3, 63, 5), padding(63)
    torch.testing.assert_close(
        cosine_features(running_direction(z, mask)), cosine_features(running_mean(z, mask)), rtol=1e-9, atol=1e-9
    )
    torch.testing.assert_close(running_direction(z)[:, :, 9], 10 * running_mean(z)[:, :, 9])
    large = torch.full((1, 1, 63, 2), 3e4, dtype=torch.float16)
    assert torch.equal(running_direction(large), large)
    monkeypatch.setattr(module, "running_sum", None)
    with operators("slow"):
        assert torch.equal(running_direction(z, mask), running_mean(z, mask))


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("convention", ["paper", "reference"])
def test_objective_of_half_precision_is_exact(dtype: torch.dtype, convention: Convention) -> None:
    """Σ e² of 1,025 tokens is beyond float16, and bfloat16 rounds it by a part in 256."""
    e, r, w_e, w_r = torch.randn(2, 1, 2, 1025, 20), torch.randn(2, 1, 2, 1025, 20), draw(2, 9, 20), draw(2, 9, 20)
    e, r, w_e, w_r, weight = (z.to(dtype) for z in (4 * e[0], 4 * r[0], w_e, w_r, torch.rand(2, 20)))
    expected = ksvd_objective(e.double(), r.double(), w_e.double(), w_r.double(), weight.double(), convention)
    found = ksvd_objective(e, r, w_e, w_r, weight, convention)
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)
    energy = torch.cat((e, r), -1).float().square().sum(-2)
    of_energy = ksvd_objective_of(energy, 1025, w_e, w_r, weight, convention)
    torch.testing.assert_close(of_energy.double(), expected, rtol=1e-5, atol=0)


def test_exp_features_of_half_precision_keep_their_range() -> None:
    """Those of a key much shorter than its query are beyond float16."""
    q, k = (torch.tensor([[[[4.0, 4.0], [1.0, 1.0]]]]).half(), torch.tensor([[[[0.0, 0.0], [4.0, 4.0]]]]).half())
    found, directions = exp_features(q, k, torch.eye(2).half())[1], torch.eye(2, dtype=torch.float64)
    expected = exp_features_naive(q.double(), k.double(), directions)[1]
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), expected, rtol=1e-5, atol=0)
