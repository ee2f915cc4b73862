"""Primal-Attention against the authors' numbers, eq. 11, and the theory of kernel SVD."""

from __future__ import annotations

from typing import Literal

import pytest
import torch
from reference_vectors import Vector, assert_equal, check_forward_backward, check_gradients, fill, load, merge
from torch import Tensor

from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.kernels.primal.equations import ksvd_objective, sampled_rows

NAMES = [
    "primal_cv__all_N33_C48_h3_s4x10",
    "primal_cv__equal_N16_C24_h2_s4x4",
    "primal_cv__sampled_N33_C24_h2_s3x5_nobias",
]


def _theirs(vector: Vector) -> dict[str, str]:
    theirs = {
        "w_e": "we",
        "w_r": "wr",
        "regulariser": "Lambda",
        "qk.weight": "qk.weight",
        "qk.bias": "qk.bias",
        "concat.weight": "concate_weight.weight",
        "concat.bias": "concate_weight.bias",
        "proj.weight": "proj.weight",
        "proj.bias": "proj.bias",
    }
    return {ours: name for ours, name in theirs.items() if name in vector}


def _module(vector: Vector) -> PrimalAttention:
    module = PrimalAttention(
        int(vector["hp_dim"]),
        int(vector["hp_num_heads"]),
        seq_len=int(vector["hp_embed_len"]),
        s=int(vector["hp_low_rank"]),
        rank_multi=int(vector["hp_rank_multi"]),
        eta=1.0,
        convention="reference",
        qkv_bias=bool(vector["hp_qk_bias"]),
    )
    fill(module, vector, _theirs(vector))
    return module


@pytest.mark.parametrize("name", NAMES)
def test_equals_the_authors_program(name: str) -> None:
    vector = load(name)
    check_forward_backward(_module(vector), vector, _theirs(vector))


SERIES = {
    "w_e": "We",
    "w_r": "Wr",
    "regulariser": "inner_attention.Lambda",
    "qk.weight": "qk.weight",
    "qk.bias": "qk.bias",
    "concat.weight": "inner_attention.concate_weight.weight",
    "concat.bias": "inner_attention.concate_weight.bias",
    "proj.weight": "out_projection.weight",
    "proj.bias": "out_projection.bias",
}
LONG_RANGE = {
    "w_e": "We",
    "w_r": "Wr",
    "regulariser": "attn.Lambda",
    "qk.weight": "qk.weight",
    "qk.bias": "qk.bias",
    "concat.weight": "attn.concate_weight.weight",
    "concat.bias": "attn.concate_weight.bias",
    "proj.weight": "ff.weight",
    "proj.bias": "ff.bias",
}
CAUSAL = {
    "w_e": "We",
    "w_r": "Wr",
    "regulariser": "Lambda",
    "qk.weight": "qk.weight",
    "qk.bias": "qk.bias",
    "concat.weight": "concate_weight.weight",
    "concat.bias": "concate_weight.bias",
}
REINFORCEMENT = {**CAUSAL, "proj.weight": "out_projection.weight", "proj.bias": "out_projection.bias"}
TEXT = {**CAUSAL, "proj.weight": "out_proj.weight", "proj.bias": "out_proj.bias"}


def _check_objective(module: PrimalAttention, vector: Vector, theirs: dict[str, str]) -> None:
    """Scores, KSVD loss and the loss's gradients, in the authors' program for one layer, η = 1."""
    x = vector["x"].clone().requires_grad_()
    module.zero_grad()
    module(x)
    assert module._last is not None
    assert_equal(module._last.e, vector["escore"])
    assert_equal(module._last.r, vector["rscore"])
    loss = module.auxiliary_loss()
    assert_equal(loss, vector["ksvd_loss"])
    loss.backward()
    assert_equal(x.grad, vector["ksvd_grad_x"])
    check_gradients(module, vector, theirs, "ksvd_gradparam")


def test_sequences_shorter_than_the_longest_equal_the_authors() -> None:
    """Built for 33 tokens and given 16: the 24 rows of f(X) repeat some tokens."""
    vector = load("primal_ts__shorter_L16_max33_C24_h2_s4x6")
    merge(vector, "qk", "query_projection", "key_projection")
    module = PrimalAttention(24, 2, seq_len=33, s=4, rank_multi=6, convention="reference")
    check_forward_backward(fill(module, vector, SERIES), vector, SERIES)


def test_rows_beyond_the_longest_sequence_equal_the_authors() -> None:
    """The same numbers of a module built for 16 tokens, if it may repeat rows; without, it has no more than 16."""
    vector = load("primal_ts__shorter_L16_max33_C24_h2_s4x6")
    merge(vector, "qk", "query_projection", "key_projection")
    module = PrimalAttention(24, 2, seq_len=16, s=4, rank_multi=6, repeat_rows=True, convention="reference")
    check_forward_backward(fill(module, vector, SERIES), vector, SERIES)
    assert PrimalAttention(24, 2, seq_len=16, s=4, rank_multi=6).w_e.shape == (2, 16, 4)


def test_repeated_rows_by_hand() -> None:
    """Seven rows of four: ⌊3i/6⌋, among the tokens alone where some are padding."""
    module = PrimalAttention(12, 2, seq_len=4, s=7, rank_multi=1, repeat_rows=True).double()
    x = torch.randn(1, 4, 12, dtype=torch.float64)
    q, k = module.qk(x)[0].unflatten(-1, (2, 2, 6)).unbind(1)
    for mask, places in [
        (None, [0, 0, 1, 1, 2, 2, 3]),
        (torch.tensor([[True, False, True, True]]), [0, 0, 0, 2, 2, 2, 3]),
    ]:
        module(x, mask)
        assert module._last is not None
        rows = x[0, places].unflatten(-1, (2, 6))
        for head in range(2):
            for z, weight, found in ((q, module.w_e, module._last.e), (k, module.w_r, module._last.r)):
                phi = z[:, head] / z[:, head].norm(dim=-1, keepdim=True)
                assert_equal(found[0, head], phi @ (rows[:, head].T @ weight[head]))


def test_rows_that_are_not_sampled_are_not_repeated() -> None:
    with pytest.raises(ValueError, match="repeat_rows needs projection: data-dependent"):
        PrimalAttention(24, 2, seq_len=16, projection="data-independent", repeat_rows=True)


def test_long_range_arena_equals_the_authors() -> None:
    """Whose loss can take the trace of the projected weights, ``W_{e|X}ᵀ W_{r|X}``."""
    vector = load("primal_lra__nopad_N33_C24_h2_s4x8_tracex")
    merge(vector, "qk", "W_q", "W_k")
    module = PrimalAttention(24, 2, seq_len=33, s=4, rank_multi=8, eta=1.0, trace="projected", convention="reference")
    check_forward_backward(fill(module, vector, LONG_RANGE), vector, LONG_RANGE)
    _check_objective(module, vector, LONG_RANGE)


def test_reinforcement_learning_equals_the_authors() -> None:
    vector = load("primal_rl__N16_C24_h2_s12")
    merge(vector, "qk", "query_projection", "key_projection")
    module = _causal(s=12)
    check_forward_backward(fill(module, vector, REINFORCEMENT), vector, REINFORCEMENT)
    _check_objective(module, vector, REINFORCEMENT)


def test_text_equals_the_authors() -> None:
    vector = load("primal_nlp__T16_C24_h2_s6")
    merge(vector, "qk", "q_proj", "k_proj")
    for name in ("x", "out", "cotangent", "grad_x", "ksvd_grad_x"):  # theirs are (T, B, C)
        vector[name] = vector[name].transpose(0, 1)
    module = _causal(s=6)
    check_forward_backward(fill(module, vector, TEXT), vector, TEXT)
    _check_objective(module, vector, TEXT)


def _causal(s: int) -> PrimalAttention:
    return PrimalAttention(
        24,
        2,
        seq_len=16,
        causal=True,
        s=s,
        eta=1.0,
        projection="data-independent",
        square="sample",
        convention="reference",
    )


@pytest.mark.parametrize(
    ("name", "square", "theirs", "parts"),
    [
        ("primal_lra__ksvd_2layers_tracenox", "batch", LONG_RANGE, ("W_q", "W_k")),
        ("primal_ts__ksvd_2layers", "sample", SERIES, ("query_projection", "key_projection")),
    ],
)
def test_losses_of_two_layers_equal_the_authors(
    name: str, square: Literal["batch", "sample"], theirs: dict[str, str], parts: tuple[str, str]
) -> None:
    """The mean over layers; Long-Range Arena with padding, of which only the output knows."""
    vector = load(name)
    layers, losses = [], []
    for index in range(2):
        own = {key.removeprefix(f"layer{index}."): value for key, value in vector.items()}
        merge(own, "qk", *parts)
        layer = PrimalAttention(24, 2, seq_len=33, s=3, rank_multi=5, eta=1.0, square=square, convention="reference")
        fill(layer, own, theirs)
        x = own["x"].clone().requires_grad_()
        assert_equal(layer(x, own["mask"].bool() if "mask" in own else None), own["out"])
        layers.append((layer, x, own))
        losses.append(layer.auxiliary_loss())
    loss = torch.stack(losses).mean()
    assert_equal(loss, vector["ksvd_loss"].mean())
    loss.backward()
    for layer, x, own in layers:
        assert_equal(x.grad, own["ksvd_grad_x"])
        check_gradients(layer, own, theirs, "ksvd_gradparam")


def test_causal_form_that_would_sample_the_future_is_refused() -> None:
    with pytest.raises(ValueError, match="needs projection: data-independent"):
        PrimalAttention(24, 2, seq_len=16, causal=True)


def test_decoding_sums_in_full_precision() -> None:
    """In bfloat16 a sum of some hundred tokens would stop growing."""
    module = PrimalAttention(24, 2, seq_len=1024, causal=True, projection="data-independent").bfloat16().eval()
    x, state, outputs = (1 + torch.randn(1, 1024, 24)).bfloat16(), None, []
    for token in x.split(1, 1):
        out, state = module.decode(token, state)
        outputs.append(out)
    torch.testing.assert_close(torch.cat(outputs, 1), module(x), rtol=0, atol=0.01)


def test_exp_features_make_rows_of_the_kernel_sum_as_remark_4_1_says() -> None:
    """``D̂^{−1} ⟨g(q_i), g(k_j)⟩`` sums to 1 over j; the scores carry D̂^{−1/2} of their own token each."""
    torch.manual_seed(0)
    module = PrimalAttention(12, 2, seq_len=5, s=2, projection="data-independent", feature_map="exp").double()
    x = torch.randn(1, 5, 12, dtype=torch.float64)
    q, k = module.qk(x)[0].unflatten(-1, (2, 2, 6)).unbind(1)
    assert module.directions is not None
    for head in range(2):
        g_q, g_k = (
            torch.exp(z[:, head] @ module.directions.T) * torch.exp(-z[:, head].square().sum(-1, keepdim=True) / 2)
            for z in (q, k)
        )
        kernel = g_q @ g_k.T
        scale = kernel.sum(-1)
        torch.testing.assert_close((kernel / scale[:, None]).sum(-1), torch.ones(5, dtype=torch.float64))
        expected = kernel / (scale[:, None] * scale[None]).sqrt()
        torch.testing.assert_close(module.attention_matrix(x)[0, head], expected)


@pytest.mark.parametrize("name", NAMES)
def test_sampled_rows_equal_the_authors(name: str) -> None:
    vector = load(name)
    for convention in ("paper", "reference"):
        rows = sampled_rows(vector["x"].shape[1], len(vector["indices"]), convention)
        assert rows.tolist() == vector["indices"].tolist()


@pytest.mark.parametrize("name", NAMES)
def test_scores_loss_and_its_gradients_equal_the_authors(name: str) -> None:
    vector = load(name)
    _check_objective(_module(vector), vector, _theirs(vector))


@pytest.mark.parametrize("name", NAMES)
def test_paper_objective_is_equation_11(name: str) -> None:
    vector = load(name)
    objective = ksvd_objective(
        vector["escore"], vector["rscore"], vector["we"], vector["wr"], vector["Lambda"], "paper"
    )
    assert_equal(objective, vector["aux_paper_eq11_per_batch_head"].mean(-1))


def test_sampling_is_the_exact_floor() -> None:
    """The authors' integer linspace is one below it here and there: at row 19 of 39 in 43, for instance."""
    assert sampled_rows(43, 39, "paper")[19] == 19 * 42 // 38 == 21
    assert sampled_rows(43, 39, "reference")[19] == 20
    for length in (2, 16, 33, 197, 1000):
        for count in (1, 2, 5, 15, 97):
            exact = [i * (length - 1) // max(count - 1, 1) for i in range(count)]
            assert sampled_rows(length, count, "paper").tolist() == exact
            assert max(exact) < length


@pytest.mark.parametrize("convention", ["paper", "reference"])
def test_initial_projections_are_orthonormal_as_stated(convention: str) -> None:
    module = PrimalAttention(24, 2, seq_len=16, s=4, rank_multi=3, convention=convention).double()  # type: ignore[arg-type]
    if convention == "paper":
        for head in module.w_e:
            torch.testing.assert_close(head.mT @ head, torch.eye(4, dtype=torch.float64), atol=1e-6, rtol=0)
    else:
        flat = module.w_e.flatten(1)
        torch.testing.assert_close(flat @ flat.mT, torch.eye(2, dtype=torch.float64), atol=1e-6, rtol=0)


def test_objective_needs_a_forward_pass() -> None:
    with pytest.raises(RuntimeError, match="there was none yet"):
        PrimalAttention(24, 2, seq_len=16).auxiliary_loss()


def _stationary_point(s: int, seed: int) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
    """Feature maps, and primal weights from the SVD of their kernel: ``K H_r = H_e Σ``, ``Kᵀ H_e = H_r Σ``."""
    torch.manual_seed(seed)
    phi_q, phi_k = torch.randn(2, 12, 6, dtype=torch.float64)
    left, values, right = torch.linalg.svd(phi_q @ phi_k.mT)
    h_e, h_r, sigma = left[:, :s], right[:s].mT, values[:s]
    w_e, w_r = phi_k.mT @ h_r, phi_q.mT @ h_e  # KKT: W_e = Σ_j φ_k(x_j) h_rjᵀ, W_r = Σ_i φ_q(x_i) h_eiᵀ
    return phi_q, phi_k, w_e, w_r, 1 / sigma


@pytest.mark.parametrize("seed", range(5))
def test_objective_is_zero_at_the_dual_solution(seed: int) -> None:
    """Lemma 4.2, with Λ = Σ⁻¹."""
    phi_q, phi_k, w_e, w_r, regulariser = _stationary_point(4, seed)
    e, r = phi_q @ w_e, phi_k @ w_r
    objective = ksvd_objective(e[None, None], r[None, None], w_e[None], w_r[None], regulariser[None], "paper")
    assert abs(objective.item()) < 1e-9
    assert (w_e * w_r).sum().item() > 1


@pytest.mark.parametrize("seed", range(5))
def test_primal_scores_equal_dual_scores(seed: int) -> None:
    """Remark 3.3: e(x) = Σ_j h_rj κ(x, x_j)."""
    phi_q, phi_k, w_e, _, _ = _stationary_point(4, seed)
    right = torch.linalg.svd(phi_q @ phi_k.mT)[2][:4].mT
    torch.testing.assert_close(phi_q @ w_e, (phi_q @ phi_k.mT) @ right, rtol=1e-12, atol=1e-12)


def test_attention_matrix_is_the_induced_kernel() -> None:
    torch.manual_seed(0)
    module = PrimalAttention(12, 2, seq_len=5, s=2, rank_multi=2).double()
    x = torch.randn(1, 5, 12, dtype=torch.float64)
    q, k = module.qk(x)[0].unflatten(-1, (2, 2, 6)).unbind(1)
    rows = x[0, [0, 1, 2, 4]].unflatten(-1, (2, 6))
    for head in range(2):
        for i in range(5):
            for j in range(5):
                phi_q = q[i, head] / q[i, head].norm()
                phi_k = k[j, head] / k[j, head].norm()
                expected = (rows[:, head] @ phi_q) @ (rows[:, head] @ phi_k)
                torch.testing.assert_close(module.attention_matrix(x)[0, head, i, j], expected)


def test_a_mask_of_another_shape_is_refused() -> None:
    module = PrimalAttention(24, 3, seq_len=9)
    for call in (module, module.attention_matrix):
        with pytest.raises(
            ValueError, match=r"^Primal-Attention: mask: expected \(2 or 1, 9\) of torch\.bool on cpu, got"
        ):
            call(torch.zeros(2, 9, 24), torch.ones(9, 2, dtype=torch.bool))
