"""Operations: by hand, beside torch's counter, and without running."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from kattn_cli.attention import ATTENTIONS
from kattn_cli.attention.options import build_attention
from kattn_cli.costs.flops_counted import Count, count_flops, count_without_running


@pytest.mark.parametrize(
    ("name", "options", "products"),
    [
        ("softmax", {}, "2·(3+1)·NC² + 4·N²C"),
        ("symmetric", {}, "2·(2+1)·NC² + 4·N²C"),
        ("rpc", {"iterations": 3}, "2·(2+1)·NC² + 3·4·N²C"),
    ],
)
def test_flops_by_hand(name: str, options: dict[str, int], products: str) -> None:
    """Matrix products as stated, and what else the formula counts: biases, scaling, softmax, the pursuit."""
    n, c, h = 10, 24, 3
    terms = {"softmax": (4, 1, 0), "symmetric": (3, 1, 0), "rpc": (3, 3, 1)}
    maps, attentions, pursuit = terms[name]
    matrix_products = 2 * maps * n * c * c + attentions * 4 * n * n * c
    rest = maps * n * c + attentions * 6 * h * n * n + pursuit * (2 * n * c + 3 * 11 * n * c)
    counted = count_flops(build_attention(name, options, dim=c, heads=h, seq_len=n), n, c)
    assert counted.flops == matrix_products + rest, products
    assert counted.how == "formula"
    assert counted.matrix_products == matrix_products


CASES = [(name, causal) for name, cls in ATTENTIONS.items() for causal in (False, True)[: 1 + cls.supports_causal]]


@pytest.mark.parametrize(("name", "causal"), CASES)
def test_formula_covers_what_torch_counts(name: str, causal: bool) -> None:
    """torch's counter sees matrix products only; the formula is never below it, and near it where they dominate.

    Counting without running gives the same numbers.
    """
    n, c = 64, 96
    options = {"projection": "data-independent"} if (name, causal) == ("primal", True) else {}

    def build() -> nn.Module:
        return build_attention(name, options, dim=c, heads=3, seq_len=n, causal=causal)

    module = build()
    counted = count_flops(module, n, c)
    assert counted.formula is not None
    if (name, causal) != ("primal", True):  # whose plain version takes running sums as products
        assert counted.matrix_products <= counted.formula <= 1.25 * counted.matrix_products
    assert counted.parameters == sum(one.numel() for one in module.parameters())
    built = count_without_running(
        lambda: build_attention(name, options, dim=c, heads=3, seq_len=n, causal=causal), n, c
    )
    assert built == counted


def test_what_is_counted_as_zero_is_named() -> None:
    def named(name: str) -> set[str]:
        return set(count_flops(build_attention(name, {}, dim=24, heads=3, seq_len=9), 9, 24).not_counted)

    assert named("softmax") == {"mul", "softmax"}
    assert {"softmax", "pow", "sum", "div"} <= named("tssa")


class Own(nn.Module):
    """A linear map, a comparison, a copy, a gathering by positions, and a running sum."""

    def __init__(self, dim: int, looks: bool = False) -> None:
        super().__init__()
        self.map = nn.Linear(dim, dim, bias=False)
        self.looks = looks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.map(x)
        if self.looks and y.sum().item() > 1e9:
            return x
        order = (y[..., 0] > 0).long().argsort(-1)
        return torch.cat((y.clone(), y), 1)[:, order[0]].cumsum(1)


def test_flops_of_a_stranger() -> None:
    """Views, copies, gathering and what yields no real numbers are not named."""
    assert count_flops(Own(8), 5, 8) == Count(None, 2 * 5 * 64, ("cumsum",), 64)
    assert Count(None, 640, (), 0).flops == 640
    assert Count(None, 640, (), 0).how == "matrix products only"


def test_what_looks_at_its_numbers_is_not_counted_without_running() -> None:
    assert count_without_running(lambda: Own(8, looks=True), 5, 8) is None
    assert count_flops(Own(8, looks=True), 5, 8).matrix_products == 640


def test_no_size_is_too_large_to_count() -> None:
    n, c = 2**20, 64
    counted = count_without_running(lambda: build_attention("softmax", {}, dim=c, heads=1, seq_len=n), n, c)
    assert counted is not None
    assert counted.matrix_products == 8 * n * c * c + 4 * n * n * c
