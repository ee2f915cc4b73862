"""RPC-Attention against the authors' numbers, by hand, and in its limits."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import torch
from against_naive import draw
from mechanisms import check_attention_matrix, first_tokens
from reference_vectors import check_forward_backward, fill, load, names

from kattn_cli.attention.options import build_attention
from kattn_cli.attention.rpc import RPCAttention
from kattn_cli.attention.symmetric import SymmetricAttention
from kattn_cli.kernels.pursuit.equations import Convention, Pursuit, pap, pap_steps, shrink, threshold
from kattn_cli.kernels.softmax import softmax_attention_naive

THEIRS = {
    "kv.weight": "qkv.weight",
    "kv.bias": "qkv.bias",
    "proj.weight": "proj.weight",
    "proj.bias": "proj.bias",
}


@pytest.mark.parametrize("name", names("rpc__n"))
def test_equals_the_authors_program(name: str) -> None:
    vector = load(name)
    dim, heads, n = int(vector["hp_dim"]), int(vector["hp_num_heads"]), vector["x"].shape[1]
    module = RPCAttention(
        dim,
        heads,
        seq_len=n,
        iterations=int(vector["hp_num_iter"]),
        lambda_=float(vector["hp_lambd"]),
        convention="reference",
    )
    check_forward_backward(fill(module, vector, THEIRS), vector, THEIRS)


def test_one_iteration_by_hand() -> None:
    """L₀ = Y₀ = 0, so S = shrink(k) and the output is A(k − S, k − S) v."""
    torch.manual_seed(0)
    k, v = torch.randn(2, 2, 3, 7, 4, dtype=torch.float64)
    for convention in get_args(Convention):
        pursuit = Pursuit(1, 0.05, convention)
        tau = threshold(k, pursuit)
        z = k - shrink(k, tau)
        expected = softmax_attention_naive(z, z, v)
        found = pap(k, v, pursuit)
        torch.testing.assert_close(found, expected, rtol=1e-12, atol=1e-12)


def test_thresholds_by_hand() -> None:
    """N = 2, d = 2, H = 2 (C = 4), every |k| = 3: ‖k‖₁ = 12 and μ = 4/48, or 8/48 with C."""
    k = torch.full((1, 2, 2, 2), -3.0)
    assert threshold(k, Pursuit(1, 2.0, "paper")).flatten().tolist() == pytest.approx([24.0, 24.0])
    assert threshold(k, Pursuit(1, 2.0, "textbook")).flatten().tolist() == pytest.approx([24.0, 24.0])
    assert threshold(k, Pursuit(1, 2.0, "reference")).flatten().tolist() == pytest.approx([1 / 3, 1 / 3])


def test_is_symmetric_attention_where_nothing_is_sparse() -> None:
    torch.manual_seed(0)
    rpc = RPCAttention(16, 2, seq_len=9, iterations=1, lambda_=1e6).double()
    symmetric = SymmetricAttention(16, 2, seq_len=9).double()
    symmetric.load_state_dict(rpc.state_dict())
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    torch.testing.assert_close(rpc(x), symmetric(x), rtol=1e-12, atol=1e-12)


def test_lambda_zero_attends_uniformly() -> None:
    """The authors' default λ = 0 with one iteration: S = k, so every key is zero."""
    torch.manual_seed(0)
    k, v = torch.randn(2, 1, 2, 5, 4)
    found = pap(k, v, Pursuit(1, 0.0, "reference"))
    torch.testing.assert_close(found, v.mean(-2, keepdim=True).expand_as(v))


def test_paper_threshold_grows_with_the_keys_and_reference_shrinks() -> None:
    torch.manual_seed(0)
    k = torch.randn(1, 2, 5, 4)
    torch.testing.assert_close(threshold(10 * k, Pursuit(1, 1.0, "paper")), 10 * threshold(k, Pursuit(1, 1.0, "paper")))
    torch.testing.assert_close(
        threshold(10 * k, Pursuit(1, 1.0, "reference")), threshold(k, Pursuit(1, 1.0, "reference")) / 10
    )


def test_share_of_sparse_entries_that_the_readme_states() -> None:
    """Random keys of ViT size, λ = 4: none in the first iteration of the paper's pursuit, about 2 % in the fourth."""
    torch.manual_seed(0)
    k, v = torch.randn(2, 4, 3, 197, 64)
    steps = pap_steps(k, v, Pursuit(4, 4.0))
    shares = [(sparse != 0).double().mean().item() for _, sparse, _ in steps]
    assert shares[0] == 0
    assert 0.01 < shares[3] < 0.03


def test_residuals_are_those_of_the_pursuit() -> None:
    torch.manual_seed(0)
    module = RPCAttention(16, 2, seq_len=9, iterations=3, lambda_=0.1).double()
    x = torch.randn(2, 9, 16, dtype=torch.float64)
    k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in module.kv(x).chunk(2, -1))
    sparse = shrink(k, threshold(k, Pursuit(1, 0.1, "paper")))
    low = softmax_attention_naive(k - sparse, k - sparse, v)
    first = (k - low - sparse).norm(dim=(-2, -1)) / k.norm(dim=(-2, -1))
    residuals = module.residuals(x)
    assert residuals.shape == (3, 2, 2)
    torch.testing.assert_close(residuals[0], first)


def test_dropout_acts_in_the_last_iteration_alone() -> None:
    """With everything dropped in the last iteration its output is zero; the earlier ones are not touched."""
    torch.manual_seed(0)
    module = RPCAttention(16, 2, seq_len=9, iterations=2, attn_drop=0.999999).double()
    x = torch.randn(1, 9, 16, dtype=torch.float64)
    torch.testing.assert_close(module(x), module.proj.bias.expand(1, 9, 16))
    assert not torch.allclose(module.eval()(x), module.proj.bias.expand(1, 9, 16))


def test_causal_threshold_is_that_of_the_tokens_so_far() -> None:
    """Each token's τ is the last one's of the sequence that ends with it."""
    torch.manual_seed(0)
    k = torch.randn(2, 3, 7, 4, dtype=torch.float64)
    for convention in get_args(Convention):
        causal = threshold(k, Pursuit(1, 2.0, convention, causal=True))
        for t in range(7):
            expected = threshold(k[:, :, : t + 1], Pursuit(1, 2.0, convention))
            torch.testing.assert_close(causal[:, :, t : t + 1], expected, rtol=1e-12, atol=0)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("asymmetric", ["none", "iterate"])
def test_attention_matrix_of_the_last_step_makes_the_output(causal: bool, asymmetric: str) -> None:
    options = {"lambda": 0.1, "iterations": 3, **({"asymmetric": asymmetric} if asymmetric != "none" else {})}
    module: Any = build_attention("rpc", options, dim=24, heads=3, seq_len=9, causal=causal).double().eval()
    matrix = check_attention_matrix(module, draw(2, 9, 24), None)
    assert matrix.triu(1).any() != causal


def test_residuals_of_padded_samples_are_their_own() -> None:
    module: Any = build_attention("rpc", {"lambda": 0.1}, dim=24, heads=3, seq_len=9).double().eval()
    x = draw(2, 9, 24)
    residuals = module.residuals(x, first_tokens(9, 9, 5))
    torch.testing.assert_close(residuals[:, 1:], module.residuals(x[1:, :5]), rtol=1e-9, atol=1e-12)
