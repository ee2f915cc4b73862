"""The pursuit by its own operator equals Algorithm 1 line by line, and keeps little for the backward pass."""

from __future__ import annotations

import pytest
import torch
from against_naive import SIZES, compare, draw, padding
from torch import Tensor

from kattn_cli.attention.rpc import RPCAttention
from kattn_cli.kernels import choice
from kattn_cli.kernels.choice import operators
from kattn_cli.kernels.pursuit import operator as pursuit_operator
from kattn_cli.kernels.pursuit.equations import CONVENTIONS, Convention, Pursuit, pap, pap_fused, pap_naive, threshold
from kattn_cli.kernels.pursuit.operator import pursuit_step, pursuit_step_backward

PURSUIT = Pursuit(3, 0.2)
each_form = pytest.mark.parametrize(("causal", "masked"), [(False, False), (False, True), (True, False), (True, True)])


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So small that several blocks, of several samples or of some of their tokens, make a tensor."""
    monkeypatch.setattr(pursuit_operator, "BLOCK", 150)


def interleaved(*size: int, dtype: torch.dtype = torch.float64) -> tuple[Tensor, Tensor]:
    """Keys and values ``(B, H, N, d)`` as one projection gives them."""
    b, h, n, d = size
    k, v = torch.randn(b, n, 2, h, d, dtype=dtype).permute(2, 0, 3, 1, 4).unbind(0)
    return k, v


@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("size", [*SIZES, (7, 2, 3, 4)])
@pytest.mark.parametrize("convention", CONVENTIONS)
@pytest.mark.parametrize(("iterations", "lambda_"), [(1, 0.1), (2, 3.0), (4, 0.05), (2, 0.0)])
@each_form
def test_equals_naive(
    size: tuple[int, ...], convention: Convention, iterations: int, lambda_: float, causal: bool, masked: bool
) -> None:
    pursuit = Pursuit(iterations, lambda_, convention, causal)
    mask = padding(size[2]).repeat(4, 1)[: size[0]] if masked else None
    compare(
        lambda k, v, mask: pap_fused(k, v, pursuit, mask=mask),
        lambda k, v, mask: pap_naive(k, v, pursuit, mask=mask),
        *interleaved(*size),
        mask=mask,
    )


@pytest.mark.parametrize("convention", CONVENTIONS)
def test_from_queries_equals_naive(convention: Convention) -> None:
    pursuit = Pursuit(3, 0.1, convention)
    compare(
        lambda q, k, v, mask: pap_fused(k, v, pursuit, q=q, mask=mask),
        lambda q, k, v, mask: pap_naive(k, v, pursuit, q=q, mask=mask),
        *(draw(2, 3, 17, 5) for _ in range(3)),
        mask=padding(17),
    )


@pytest.mark.parametrize("causal", [False, True])
def test_thousands_of_tokens(causal: bool) -> None:
    """Against torch's operations, which equal Algorithm 1 in ``test_pap.py``."""
    pursuit = Pursuit(2, 0.2, causal=causal)

    def plain(k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        with operators("plain"):
            return pap(k, v, pursuit)

    compare(lambda k, v, mask: pap_fused(k, v, pursuit), plain, *interleaved(1, 1, 4097, 2), mask=None)


@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float32, 1e-5), (torch.bfloat16, 2**-4)])
def test_in_lower_precision(dtype: torch.dtype, tolerance: float) -> None:
    """Of 95 % of the entries, relative to their root mean square: some round to the other side of τ.

    bfloat16 rounds z, L and U − S in each of three iterations, by 2⁻⁹ at most.
    """
    k, v = interleaved(2, 3, 63, 5, dtype=dtype)
    cotangent = torch.randn(2, 3, 63, 5).to(dtype)
    results = []
    for function, to in ((pap_fused, dtype), (pap_naive, torch.float64)):
        leaves = (k.to(to).requires_grad_(), v.to(to).requires_grad_())
        out = function(*leaves, PURSUIT)
        results.append((out, *torch.autograd.grad(out, leaves, cotangent.to(to))))
    for found, expected in zip(*results, strict=True):
        assert found.dtype == dtype
        errors = (found.double() - expected).abs().flatten()
        assert errors.quantile(0.95) < tolerance * expected.square().mean().sqrt()


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("causal", [False, True])
def test_operators_are_what_torch_asks_of_them(first: bool, causal: bool) -> None:
    (k, v), carried = interleaved(2, 3, 7, 5), draw(2, 3, 7, 5)
    tau = threshold(k, Pursuit(1, 0.2, causal=causal))
    before = (None, None) if first else (v.detach().clone().requires_grad_(), carried.requires_grad_())
    leaves = (k.detach().requires_grad_(), *before, tau.detach().requires_grad_())
    for carry in (True, False):
        torch.library.opcheck(pursuit_step, (*leaves, -1, carry, True))
    signs = pursuit_step(*leaves, -1, True, True)[2]
    for following in (draw(2, 3, 7, 5), None):
        torch.library.opcheck(pursuit_step_backward, (draw(2, 3, 7, 5), following, signs, tau, 1, first))


def test_signs_are_those_of_the_sparse_part() -> None:
    k = torch.tensor([[[[3.0, -0.5]], [[-2.0, 1.0]]]])
    z, carried, signs = pursuit_step(k, None, None, torch.ones(1, 2, 1, 1), -1, True, True)
    assert z.tolist() == [[[[1.0, -0.5]], [[-1.0, 1.0]]]]
    assert carried.tolist() == [[[[-2.0, 0.0]], [[1.0, 0.0]]]]
    assert signs.tolist() == [[[[1, 0]], [[-1, 0]]]]
    assert [one.numel() for one in pursuit_step(k, None, None, torch.ones(1, 2, 1, 1), -1, False, False)] == [4, 0, 0]


def kept(pursuit: Pursuit, n: int, version: str) -> dict[int, int]:
    """Bytes of the tensors that wait for the backward pass, by storage."""
    sizes: dict[int, int] = {}

    def note(z: Tensor) -> Tensor:
        sizes[z.untyped_storage().data_ptr()] = z.untyped_storage().nbytes()
        alive.append(z)
        return z

    alive: list[Tensor] = []
    k, v = (z.requires_grad_() for z in interleaved(1, 8, n, 48, dtype=torch.float32))
    with operators(version), torch.autograd.graph.saved_tensors_hooks(note, lambda z: z):
        pap(k, v, pursuit)
    return sizes


def test_keeps_no_matrix_of_tokens_by_tokens() -> None:
    """For each of three iterations z and L, a byte an entry, logsumexps; besides, keys and values, |k| and its sum."""
    n = 700
    entries = n * 8 * 48
    assert max(kept(PURSUIT, n, "slow").values()) == 4 * 8 * n * n
    assert max(kept(PURSUIT, n, "plain").values()) == 2 * 4 * entries
    total = sum(kept(PURSUIT, n, "fast").values())
    assert 3 * 9 * entries < total < (3 * 9 + 3 * 4 + 1) * entries < 0.6 * sum(kept(PURSUIT, n, "plain").values())


@pytest.mark.parametrize("causal", [False, True])
def test_compiles_into_one_graph(causal: bool) -> None:
    pursuit = Pursuit(3, 0.2, causal=causal)
    compiled = torch.compile(pap_fused, fullgraph=True, backend="aot_eager")
    compare(
        lambda k, v, mask: compiled(k, v, pursuit),
        lambda k, v, mask: pap_fused(k, v, pursuit),
        *interleaved(2, 3, 17, 5),
        mask=None,
    )


def test_on_the_meta_device() -> None:
    k = torch.empty(2, 3, 17, 5, device="meta", requires_grad=True)
    out = pap_fused(k, k, PURSUIT)
    (grad,) = torch.autograd.grad(out.sum(), k)
    assert out.shape == grad.shape == (2, 3, 17, 5)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_under_autocast(dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = RPCAttention(24, 3, seq_len=13, iterations=2, lambda_=0.2), torch.randn(2, 13, 24)
    expected = module(x)
    monkeypatch.setattr(choice, "SMALL", 0)
    with torch.autocast("cpu", dtype):
        out = module(x)
    out.float().square().sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
    torch.testing.assert_close(out.float(), expected, rtol=0.05, atol=0.05)


def test_dropout_acts_in_the_last_iteration_alone() -> None:
    k, v = interleaved(1, 2, 9, 4)
    assert not pap_fused(k, v, Pursuit(2, 0.2), dropout=0.999999).any()
    with operators("slow"):
        assert not pap(k, v, Pursuit(2, 0.2), dropout=0.999999).any()
