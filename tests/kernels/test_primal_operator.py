"""Primal scores by their own operator equal eq. 6 token by token; the energies that come along make the same J."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from against_naive import PADDINGS, SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.kernels import choice
from kattn_cli.kernels import compile_c as build
from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.primal import c as primal
from kattn_cli.kernels.primal.equations import (
    CONVENTIONS,
    Convention,
    cosine_scores,
    ksvd_objective,
    ksvd_objective_of,
    primal_scores_naive,
)
from kattn_cli.kernels.primal.operator import primal_operator, primal_operator_backward

pytestmark = pytest.mark.skipif(not build.available(), reason="no C compiler here")
each_size = pytest.mark.parametrize("size", SIZES)


@pytest.fixture(autouse=True)
def _for_any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    """The operator, in blocks of a few tokens, where otherwise torch's operations would do."""
    monkeypatch.setattr(choice, "SMALL", 0)
    monkeypatch.setattr(primal, "BLOCK", 150)


def interleaved(*size: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Queries and keys ``(B, H, N, d)`` as one projection gives them."""
    b, h, n, d = size
    q, k = torch.randn(b, n, 2, h, d, dtype=dtype).permute(2, 0, 3, 1, 4).unbind(0)
    return q, k


def naive_scores(q: Tensor, k: Tensor, rows: Tensor | None, w_e: Tensor, w_r: Tensor) -> tuple[Tensor, Tensor]:
    unit = [z / z.norm(dim=-1, keepdim=True) for z in (q, k)]
    return primal_scores_naive(unit[0], rows, w_e), primal_scores_naive(unit[1], rows, w_r)


@each_size
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize("padded", PADDINGS)
@pytest.mark.parametrize("data_dependent", [True, False])
def test_scores_and_objective_equal_naive(
    size: tuple[int, ...], convention: Convention, padded: Any, data_dependent: bool
) -> None:
    """Both at once, so that the gradients of the scores and of their energies meet."""
    b, h, n, d = size
    count = 7 if data_dependent else d
    inputs = [*interleaved(*size), draw(b, h, 7, d), draw(h, count, 3), draw(h, count, 3), draw(h, 3).abs()]

    def fast(q: Tensor, k: Tensor, x: Tensor, w_e: Tensor, w_r: Tensor, reg: Tensor, mask: Tensor | None) -> Tensor:
        rows = x if data_dependent else None
        counted = None if convention == "reference" else mask
        both, energy = cosine_scores(q, k, rows, w_e, w_r, counted)
        assert energy is not None
        return both + 0 * x.sum() + ksvd_objective_of(energy, n, w_e, w_r, reg, convention)[:, None, None, None]

    def slow(q: Tensor, k: Tensor, x: Tensor, w_e: Tensor, w_r: Tensor, reg: Tensor, mask: Tensor | None) -> Tensor:
        e, r = naive_scores(q, k, x if data_dependent else None, w_e, w_r)
        objective = ksvd_objective(e, r, w_e, w_r, reg, convention, mask)
        return torch.cat((e, r), -1) + 0 * x.sum() + objective[:, None, None, None]

    compare(fast, slow, *inputs, mask=padded(n))


def test_thousands_of_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(primal, "BLOCK", 2**12)
    inputs = [*interleaved(1, 2, 4097, 3), draw(1, 2, 7, 3), draw(2, 7, 2), draw(2, 7, 2)]
    with operators("plain"):
        assert cosine_scores(*inputs)[1] is None

    def plain(*inputs: Tensor, mask: Tensor | None) -> Tensor:
        with operators("plain"):
            return cosine_scores(*inputs)[0]

    compare(lambda *inputs, mask: cosine_scores(*inputs)[0], plain, *inputs, mask=None)


def test_norms_are_clamped_as_where_they_divide() -> None:
    """A vector of 0, and one shorter than the least norm: scores and gradients of ``F.normalize``."""
    q, k = draw(1, 2, 5, 4), draw(1, 2, 5, 4)
    q[0, 0, 1], k[0, 1, 2] = 0, 1e-14
    weights = [draw(2, 4, 3), draw(2, 4, 3)]

    def plain(*inputs: Tensor, mask: Tensor | None) -> Tensor:
        with operators("plain"):
            return cosine_scores(inputs[0], inputs[1], None, inputs[2], inputs[3])[0]

    def fast(*inputs: Tensor, mask: Tensor | None) -> Tensor:
        return cosine_scores(inputs[0], inputs[1], None, inputs[2], inputs[3])[0]

    compare(fast, plain, q, k, *weights, mask=None)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2**-6)])
def test_in_lower_precision(dtype: torch.dtype, tolerance: float) -> None:
    """Relative in norm: bfloat16 rounds f(X)ᵀW, the scores and the gradients, by 2⁻⁹ each."""
    inputs = [
        *interleaved(2, 3, 63, 5, dtype=dtype),
        *(draw(*s).to(dtype) for s in [(2, 3, 7, 5), (3, 7, 4), (3, 7, 4)]),
    ]
    cotangent = torch.randn(2, 3, 63, 8).to(dtype)
    results = []
    for to in (dtype, torch.float64):
        leaves = [z.to(to).requires_grad_() for z in inputs]
        out = cosine_scores(*leaves)[0] if to is dtype else torch.cat(naive_scores(*leaves), -1)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent.to(to))))
    for found, expected in zip(*results, strict=True):
        assert found.dtype == dtype
        assert (found.double() - expected).norm() < tolerance * expected.norm()


@pytest.mark.parametrize("samples", [1, 2])
@pytest.mark.parametrize("padded", [False, True])
def test_operators_are_what_torch_asks_of_them(samples: int, padded: bool) -> None:
    q, k = (z.detach().requires_grad_() for z in interleaved(2, 3, 7, 5))
    weight, mask = draw(samples, 3, 5, 8).requires_grad_(), padding(7) if padded else None
    torch.library.opcheck(primal_operator, (q, k, weight, mask))
    scores, energy, norms = (z.detach() for z in primal_operator(q, k, weight, mask))
    for grad_energy in (draw(*energy.shape), None):
        given = (draw(*scores.shape), grad_energy, q.detach(), k.detach(), weight.detach(), mask, scores, norms)
        torch.library.opcheck(primal_operator_backward, given)


def test_energies_alone_have_a_gradient() -> None:
    leaves = [*interleaved(2, 3, 7, 5), draw(2, 3, 7, 5), draw(3, 7, 4), draw(3, 7, 4)]
    energies: list[Any] = [
        lambda *z, mask: cosine_scores(*z)[1],
        lambda *z, mask: torch.cat(naive_scores(*z), -1).square().sum(-2),
    ]
    compare(*energies, *leaves, mask=None)


OPTIONS: list[dict[str, Any]] = [
    {},
    {"convention": "reference"},
    {"projection": "data-independent"},
    {"projection": "data-independent", "causal": True},
    {"scores": "e", "trace": "projected"},
    {"convention": "reference", "trace": "projected", "square": "sample"},
]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("padded", PADDINGS)
@pytest.mark.parametrize("asked", CONVENTIONS)
def test_the_mechanism_is_the_same(options: dict[str, Any], padded: Any, asked: Convention) -> None:
    """Outputs, J in either convention, and all gradients, with the operator and without. 70 tokens: three chunks."""
    built = PrimalAttention(24, 3, seq_len=70, s=3, rank_multi=2, **options).double()
    x, mask = draw(2, 70, 24).requires_grad_(), padded(70)
    cotangent = draw(2, 70, 24)
    results = []
    for version in ("fast", "slow"):
        with operators(version):
            out = built(x, mask)
            loss = built.objective(asked).square().sum()
        out = out if mask is None else out * mask[..., None]
        total = (out * cotangent).sum() + loss
        results.append((out, loss, *torch.autograd.grad(total, [x, *built.parameters()])))
    for found, expected in zip(*results, strict=True):
        torch.testing.assert_close(found, expected, rtol=1e-9, atol=1e-9)


def test_compiles_into_one_graph() -> None:
    inputs = [*interleaved(2, 3, 17, 5), draw(2, 3, 7, 5), draw(3, 7, 4), draw(3, 7, 4)]
    compiled = torch.compile(cosine_scores, fullgraph=True, backend="aot_eager")

    def both(function: Any) -> Any:
        return lambda *inputs, mask: torch.cat([z.flatten() for z in function(*inputs)])

    compare(both(compiled), both(cosine_scores), *inputs, mask=None)


def test_on_the_meta_device() -> None:
    q, weight = torch.empty(2, 3, 17, 5, device="meta", requires_grad=True), torch.empty(2, 3, 5, 8, device="meta")
    scores, energy, norms = primal_operator(q, q, weight, None)
    (grad,) = torch.autograd.grad(scores.sum() + energy.sum(), q)
    assert [tuple(z.shape) for z in (scores, energy, norms, grad)] == [
        (2, 3, 17, 8),
        (2, 3, 8),
        (2, 2, 3, 17),
        (2, 3, 17, 5),
    ]


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("options", [{}, {"projection": "data-independent", "causal": True}], ids=str)
def test_under_autocast(dtype: torch.dtype, options: dict[str, Any]) -> None:
    built, x = PrimalAttention(24, 3, seq_len=70, s=3, **options), torch.randn(2, 70, 24)
    expected = built(x)
    with torch.autocast("cpu", dtype):
        out = built(x)
        loss = built.auxiliary_loss()
    (out.float().square().sum() + loss).backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in built.parameters())
    torch.testing.assert_close(out.float(), expected, rtol=0.05, atol=0.05)


def test_no_token_sees_its_future() -> None:
    """However large it is: sums of chunks are never taken off again."""
    built = PrimalAttention(24, 3, seq_len=70, causal=True, projection="data-independent")
    x = torch.randn(1, 70, 24)
    out = built(x)
    for t in (1, 31, 32, 45, 69):
        later = torch.cat((x[:, :t], 1e4 * torch.randn_like(x[:, t:])), 1)
        assert torch.equal(built(later)[:, :t], out[:, :t])
