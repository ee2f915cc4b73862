"""What enters operators: broadcast and strided masks count as themselves, and what is no input of theirs is refused."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from fuzzed_calls import among_others, one_for_all
from torch import Tensor

from kattn_cli.attention import ATTENTIONS
from kattn_cli.attention.options import build_attention
from kattn_cli.kernels import choice
from kattn_cli.kernels import compile_c as build
from kattn_cli.kernels.causal_tssa.operator import causal_tssa, causal_tssa_operator
from kattn_cli.kernels.entry import parameter, token_mask
from kattn_cli.kernels.masks import token_counts, without_padding
from kattn_cli.kernels.primal.equations import cosine_scores
from kattn_cli.kernels.primal.operator import primal_operator
from kattn_cli.kernels.pursuit.equations import Pursuit, pap
from kattn_cli.kernels.pursuit.operator import pursuit_step
from kattn_cli.kernels.softmax import softmax_attention
from kattn_cli.kernels.threads import call
from kattn_cli.kernels.tssa.operator import tssa, tssa_operator

B, H, N, D, S = 3, 2, 21, 4, 3
ROW = torch.arange(N)[None] % 4 != 1
compiled = pytest.mark.skipif(not build.available(), reason="no C compiler here")


def of_tssa(w: Tensor, mask: Tensor | None) -> Tensor:
    return tssa(w, torch.linspace(0.5, 2, H, dtype=w.dtype), True, mask)


def of_causal_tssa(w: Tensor, mask: Tensor | None) -> Tensor:
    bias = torch.linspace(-1, 1, H * N, dtype=w.dtype).reshape(1, H, N, 1)
    return causal_tssa(w, torch.ones(H, dtype=w.dtype), bias, mask=mask)


def of_primal(w: Tensor, mask: Tensor | None) -> Tensor:
    """The energies that the objective is made of; without a kernel they are made of the scores."""
    weights = torch.linspace(-1, 1, H * D * S, dtype=w.dtype).reshape(H, D, S).cos()
    scores, energy = cosine_scores(w, w.flip(-1), None, weights, weights.sin(), mask)
    if energy is None:
        energy = scores.square().masked_fill(torch.zeros(1) > 0 if mask is None else ~mask[:, None, :, None], 0).sum(-2)
    return energy


def of_pursuit(w: Tensor, mask: Tensor | None) -> Tensor:
    return pap(w, w, Pursuit(2, 1.0), mask=mask)


OPERATORS: list[Callable[[Tensor, Tensor | None], Tensor]] = [of_tssa, of_causal_tssa, of_primal, of_pursuit]
each_operator = pytest.mark.parametrize("operator", OPERATORS)


@pytest.fixture(autouse=True)
def _whatever_the_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(choice, "SMALL", 0)


@compiled
@each_operator
@pytest.mark.parametrize("given", [one_for_all, lambda m: m[:1].expand(B, -1), among_others, lambda m: m.mT.clone().mT])
def test_masks_of_one_row_and_of_any_strides(
    operator: Callable[[Tensor, Tensor | None], Tensor], given: Callable[[Tensor], Tensor]
) -> None:
    w, mask = torch.randn(B, H, N, D, dtype=torch.float64), ROW.repeat(B, 1)
    with choice.operators("plain"):
        expected = operator(w, mask)
    torch.testing.assert_close(operator(w, given(mask)), expected, rtol=1e-12, atol=1e-12)


@compiled
@each_operator
def test_the_same_at_the_size_at_which_kernels_begin(
    operator: Callable[[Tensor, Tensor | None], Tensor], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "SMALL", 2**18)
    w = torch.randn(2**18 // (H * N * D) + 1, H, N, D, dtype=torch.float64)
    expected = operator(w, ROW.repeat(len(w), 1))
    assert torch.equal(operator(w, ROW), expected)
    assert torch.equal(operator(w, among_others(ROW.repeat(len(w), 1))), expected)


@pytest.mark.parametrize("name", ["tssa", "primal"])
def test_a_mask_of_one_row_in_a_mechanism(name: str) -> None:
    module = build_attention(name, {}, dim=H * D, heads=H, seq_len=N).double()
    x = torch.randn(B, N, H * D, dtype=torch.float64)
    assert torch.equal(module(x, ROW), module(x, ROW.repeat(B, 1)))
    if name == "primal":
        assert torch.equal(module.attention_matrix(x, ROW), module.attention_matrix(x, ROW.repeat(B, 1)))  # type: ignore[operator]


@pytest.mark.parametrize("version", choice.VERSIONS)
@each_operator
@pytest.mark.parametrize(
    ("mask", "got"),
    [
        (ROW.repeat(B, 1)[:, :1], r"\(3, 1\) of torch.bool on cpu"),
        (ROW.repeat(2, 1), r"\(2, 21\) of torch.bool on cpu"),
        (ROW.repeat(B + 1, 1), r"\(4, 21\) of torch.bool on cpu"),
        (ROW[0], r"\(21,\) of torch.bool on cpu"),
        (ROW.repeat(B, 1)[:, None], r"\(3, 1, 21\) of torch.bool on cpu"),
        (ROW.repeat(B, 1).long(), r"\(3, 21\) of torch.int64 on cpu"),
        (ROW.repeat(B, 1).to("meta"), r"\(3, 21\) of torch.bool on meta"),
    ],
)
def test_what_is_no_mask_is_refused(
    operator: Callable[[Tensor, Tensor | None], Tensor], mask: Tensor, got: str, version: str
) -> None:
    expected = rf"^[-A-Za-z ]+: mask: expected \(3 or 1, 21\) of torch.bool on cpu, got {got}$"
    with choice.operators(version), pytest.raises(ValueError, match=expected):
        operator(torch.randn(B, H, N, D), mask)


W, OTHER, WEIGHTS = torch.rand(2, 3, 5, 4), torch.rand(2, 3, 6, 4), torch.rand(3, 4, 2)


@pytest.mark.parametrize(
    ("begins", "of"),
    [
        ("TSSA: w: ", lambda: tssa(W[0], torch.ones(3))),
        ("TSSA: eta: ", lambda: tssa(W, torch.ones(2))),
        ("causal TSSA: w: ", lambda: causal_tssa(W[0], torch.ones(3), torch.zeros(1, 3, 5, 1))),
        ("causal TSSA: eta: ", lambda: causal_tssa(W, torch.ones(2), torch.zeros(1, 3, 5, 1))),
        ("causal TSSA: bias: ", lambda: causal_tssa(W, torch.ones(3), torch.zeros(1, 3, 6, 1))),
        ("primal scores: q: ", lambda: cosine_scores(W[0], W[0], None, WEIGHTS, WEIGHTS)),
        ("primal scores: k: ", lambda: cosine_scores(W, OTHER, None, WEIGHTS, WEIGHTS)),
        ("primal scores: w_e: ", lambda: cosine_scores(W, W, None, WEIGHTS[:2], WEIGHTS)),
        ("primal scores: w_r: ", lambda: cosine_scores(W, W, None, WEIGHTS, WEIGHTS[:2])),
        ("primal scores: mask: ", lambda: cosine_scores(W, W, None, WEIGHTS, WEIGHTS, torch.ones(5, 2) > 0)),
        ("attention: mask: ", lambda: without_padding(W, torch.ones(5, 2) > 0)),
        ("attention: mask: ", lambda: token_counts(W, torch.ones(5, 2) > 0, False)),
        ("pursuit: k: ", lambda: pap(W[0], W[0], Pursuit(2, 1.0))),
        ("pursuit: v: ", lambda: pap(W, OTHER, Pursuit(2, 1.0))),
        ("pursuit: q: ", lambda: pap(W, W, Pursuit(2, 1.0), q=OTHER)),
        ("pursuit: mask: ", lambda: pap(W, W, Pursuit(2, 1.0), mask=torch.ones(5, 2) > 0)),
    ],
)
def test_a_refusal_names_the_operator_and_its_input(begins: str, of: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match=f"^{begins}expected ") as caught:
        of()
    assert ", got (" in str(caught.value)


def test_softmax_attention_refuses_a_mask_for_other_samples() -> None:
    q = torch.randn(1, H, N, D)
    with pytest.raises(ValueError, match=r"^softmax attention: mask: expected \(1 or 1, 21\) of torch.bool on cpu"):
        softmax_attention(q, q, q, mask=ROW.repeat(2, 1))


@compiled
def test_parameters_of_one_for_all_heads_are_those_of_each() -> None:
    w = torch.randn(B, H, N, D, dtype=torch.float64)
    one, each = torch.full((1,), 0.7, dtype=torch.float64), torch.full((2 * H,), 0.7, dtype=torch.float64)[::2]
    bias = torch.linspace(-1, 1, N, dtype=torch.float64).reshape(1, 1, N, 1)
    assert torch.equal(tssa(w, one), tssa(w, each))
    assert torch.equal(causal_tssa(w, one, bias), causal_tssa(w, each, bias.repeat(B, H, 1, 1)))


def test_other_parameters_are_refused() -> None:
    w = torch.randn(B, H, N, D)
    with pytest.raises(
        ValueError, match=r"^TSSA: eta: expected \(2,\) of torch.float32 or narrower on cpu, got \(3,\)"
    ):
        tssa(w, torch.ones(3))
    with pytest.raises(
        ValueError, match=r"^TSSA: eta: expected \(2,\) of torch.float32 .*, got \(2,\) of torch.float64"
    ):
        tssa(w, torch.ones(H, dtype=torch.float64))
    with pytest.raises(
        ValueError, match=r"^TSSA: w: expected \(B, H, N, d\) of floating-point numbers, got \(2, 21, 4\)"
    ):
        tssa(w[0], torch.ones(H))
    with pytest.raises(ValueError, match=r"^causal TSSA: bias: expected \(3, 2, 21, 1\) .*, got \(2, 2, 21, 1\)"):
        causal_tssa(w, torch.ones(H), torch.zeros(2, H, N, 1))
    with pytest.raises(ValueError, match=r"^primal scores: k: expected \(3, 2, 21, 4\) .*, got \(3, 2, 20, 4\)"):
        cosine_scores(w, w[:, :, 1:], None, torch.ones(H, D, S), torch.ones(H, D, S))
    with pytest.raises(ValueError, match=r"^primal scores: w_r: expected \(2, 4, 3\) .*, got \(2, 5, 3\)"):
        cosine_scores(w, w, None, torch.ones(H, D, S), torch.ones(H, D + 1, S))
    with pytest.raises(ValueError, match=r"^pursuit: v: expected \(3, 2, 21, 4\) .*, got \(1, 2, 21, 4\)"):
        pap(w, w[:1], Pursuit(2, 1.0))


@compiled
def test_operators_of_torch_check_for_themselves() -> None:
    """Graphs, and ``torch.ops``, reach them past the functions that call them."""
    w, eta = torch.randn(B, N, H, D), torch.ones(H)
    expected = tssa_operator(w, eta, ROW.repeat(B, 1), True)
    strided = w.transpose(1, 2).contiguous().transpose(1, 2)
    for found in (tssa_operator(w, eta, ROW, True), tssa_operator(strided, eta, ROW, True)):
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))
    with pytest.raises(ValueError, match=r"^kattn::tssa: mask: expected \(3 or 1, 21\)"):
        tssa_operator(w, eta, ROW.repeat(2, 1), True)
    with pytest.raises(ValueError, match=r"^kattn::causal_tssa: bias: expected \(1, 2, 21\)"):
        causal_tssa_operator(w, eta, torch.zeros(1, H, N - 1), None, True, 1)
    q = w.transpose(1, 2)
    with pytest.raises(
        ValueError, match=r"^kattn::primal_scores: weight: expected \(3, 2, 4, 6\) .*, got \(2, 2, 4, 6\)"
    ):
        primal_operator(q, q, torch.ones(2, H, D, 2 * S), None)
    with pytest.raises(ValueError, match=r"^kattn::pursuit_step: tau: expected \(3, 2, 1, 1\) .*, got \(1, 2, 1, 1\)"):
        pursuit_step(q, None, None, torch.ones(1, H, 1, 1), 1, False, False)


@compiled
def test_a_kernel_in_c_is_given_contiguous_memory_alone() -> None:
    z = torch.zeros(4, 4)
    with pytest.raises(ValueError, match=r"^C kernels read contiguous tensors, got \(4, 4\) by \(1, 4\)$"):
        call("tssa_norms", z.dtype, [(1, 4, 1, 4, 0, 1, 0, 4, 0)], z.mT, torch.zeros(1, 1, 1, 4).double())


@each_operator
@pytest.mark.parametrize("shape", [(0, H, N, D), (B, H, 0, D), (B, 0, N, D), (B, H, N, 0)], ids=["B", "N", "H", "d"])
def test_no_kernel_is_made_for_nothing(
    operator: Callable[[Tensor, Tensor | None], Tensor], shape: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not choice.kernel_for(torch.zeros(shape))
    assert not choice.operator_for(torch.zeros(shape))
    if shape == (B, H, 0, D) and operator is not of_causal_tssa:
        assert not operator(torch.zeros(shape), ROW[:, :0]).any()


def test_a_token_too_wide_for_the_stack_of_a_thread_is_left_to_torch() -> None:
    assert not choice.kernel_for(torch.zeros(1, 2, 1, 2**20), 2**21)
    w = torch.randn(1, 1, 2, 2**20)
    assert causal_tssa(w, torch.ones(1), torch.zeros(1, 1, 2, 1)).shape == tssa(w, torch.ones(1)).shape == w.shape


def test_a_mask_that_is_one_is_not_copied() -> None:
    mask, z = ROW.repeat(B, 1), torch.zeros(B, N, 1)
    found = token_mask("", mask, z)
    assert found is not None
    assert found.data_ptr() == mask.data_ptr()
    eta = torch.ones(H)
    assert parameter("", "eta", eta, (H,), z).data_ptr() == eta.data_ptr()


EMPTY = [
    *((name, {}) for name in ATTENTIONS),
    ("bigbird", {"block_size": 2}),
    ("linear", {"convention": "reference"}),
    ("longformer", {"window": 2, "global_tokens": 2}),
    ("nystromformer", {"landmarks": 2, "conv_kernel_size": 3, "convention": "reference"}),
    ("performer", {"convention": "reference"}),
    ("primal", {"feature_map": "exp", "projection": "data-independent"}),
    ("reformer", {"chunk": 2}),
    ("yoso_e", {"conv_kernel_size": 3}),
]


@pytest.mark.parametrize(("samples", "tokens"), [(0, N), (2, 0), (0, 0)])
@pytest.mark.parametrize(("name", "options"), EMPTY, ids=str)
def test_mechanisms_take_nothing(name: str, options: dict[str, Any], samples: int, tokens: int) -> None:
    module = build_attention(name, options, dim=H * D, heads=H, seq_len=N)
    for mask in (None, torch.ones(samples, tokens, dtype=torch.bool)):
        for version in choice.VERSIONS:
            with choice.operators(version):
                x = torch.zeros(samples, tokens, H * D, requires_grad=True)
                out = module(x, mask)
                assert out.shape == x.shape
                out.sum().backward()
