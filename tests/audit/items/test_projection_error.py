"""The projection error against the value that the authors log, and by its definition."""

from __future__ import annotations

import math

import torch
from reference_vectors import assert_equal, fill, load

from kattn_cli.attention.heads import split_projections
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.audit.items.alignment.theorem_values import theorem_values
from kattn_cli.audit.items.projection_error.measure import kernel_projection_error, projection_error
from kattn_cli.kernels.softmax import standardised


def test_equals_what_the_authors_log() -> None:
    vector = load("jproj__N16_C24_h2")
    projected = torch.nn.functional.linear(vector["x"], vector["qkv.weight"], vector["qkv.bias"])
    q, k, v = split_projections(projected, 2, 3)
    assert_equal(standardised(q), vector["q_normalised"])
    assert_equal(standardised(k), vector["k_normalised"])
    error = projection_error(q, k, v, "reference")
    torch.testing.assert_close(error.feature, vector["aux_phiq_norm_sq"], rtol=1e-9, atol=0)
    torch.testing.assert_close(error.feature - error.projection, vector["aux_error"], rtol=1e-9, atol=1e-9)
    assert_equal(error.logged(), vector["logged_train_error"])


def test_of_a_model_that_attends_so_it_is_that_of_its_own_output() -> None:
    """h is what the model attends to, and what the authors log is met from what meets in its softmax."""
    vector = load("jproj__N16_C24_h2")
    module = SoftmaxAttention(24, 2, seq_len=16, standardise=True)
    fill(module, vector, {name: name for name in module.state_dict()})
    q, k, v = module.kernel_inputs(vector["x"])
    error = projection_error(q, k, v, "reference")
    attended = module.attention_matrix(vector["x"]) @ v
    assert_equal(attended, vector["h_out"])
    assert_equal(error.projection, attended.square().sum(-1))
    assert_equal(error.logged(), vector["logged_train_error"])


def test_paper_is_the_definition() -> None:
    """``φ(x) = exp(xᵀ·/√d) / g(x)``: its norm is κ_φ(q, q), with g the sum over the keys."""
    torch.manual_seed(0)
    q, k, v = torch.randn(3, 1, 2, 5, 4, dtype=torch.float64)
    error = projection_error(q, k, v)
    for head in range(2):
        for i in range(5):
            weights = [math.exp(float(q[0, head, i] @ k[0, head, j]) / 2) for j in range(5)]
            feature = math.exp(float(q[0, head, i].square().sum()) / 2) / sum(weights) ** 2
            h = sum(weight * v[0, head, j] for j, weight in enumerate(weights)) / sum(weights)
            assert math.isclose(error.feature[0, head, i], feature, rel_tol=1e-12)
            assert math.isclose(error.projection[0, head, i], h.square().sum(), rel_tol=1e-12)


def test_keys_far_away_do_not_overflow() -> None:
    """In log space: exp(q·q/√d) alone is beyond float32."""
    z = torch.full((1, 1, 3, 4), 20.0)
    assert projection_error(z, z, z).feature.isfinite().all()


def test_projection_error_in_explicit_features() -> None:
    """Eq. 13 for ``κ = (1 + xᵀy)²``: the squared distance of φ(q) from its projection, coordinate by coordinate."""
    q, k = torch.randn(2, 7, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    root = math.sqrt(2)

    def features(x: torch.Tensor) -> torch.Tensor:
        a, b = x.unbind(-1)
        return torch.stack([torch.ones_like(a), root * a, root * b, a * a, b * b, root * a * b], -1)

    def log_kernel(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return 2 * (1 + x @ y.mT).abs().log()

    def phi(x: torch.Tensor) -> torch.Tensor:
        return features(x) / (features(x) @ features(k).T).sum(-1, keepdim=True)

    away = phi(k) - phi(k).mean(0)
    axes = torch.linalg.eigh(away.T @ away).eigenvectors.flip(-1)[:, :3]
    remainder = phi(q) - phi(q) @ axes @ axes.T

    values = theorem_values(k, 3, log_kernel).values
    error = kernel_projection_error(log_kernel(q, q).diagonal(), log_kernel(q, k), values)
    torch.testing.assert_close(error.feature, phi(q).square().sum(-1))
    torch.testing.assert_close(error.feature - error.projection, remainder.square().sum(-1))
    torch.testing.assert_close(error.logged(), remainder.square().sum(-1).mean().log())
