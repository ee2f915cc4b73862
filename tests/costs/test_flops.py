"""Operations of mechanisms and of whole models: by hand, beside torch's counter, and without running."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kattn_cli.attention import attention_classes
from kattn_cli.attention.options import build_attention
from kattn_cli.costs.flops import Count, count_flops, count_without_running, model_flops, model_flops_of
from kattn_cli.models import build_model
from kattn_cli.recipe.model import TimmModel, Tost, Vit
from kattn_cli.recipe.schema import Attention


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


def test_standardising_costs_five_operations_an_entry() -> None:
    """Mean, subtraction, square, sum, division; of queries and keys, or of keys that are both."""
    for name, projections in (("softmax", 2), ("symmetric", 1)):
        plain, standardised = (
            count_flops(build_attention(name, options, dim=24, heads=3, seq_len=10), 10, 24).flops
            for options in ({}, {"standardise": True})
        )
        assert standardised - plain == projections * 5 * 10 * 24


CASES = [
    (name, causal) for name, cls in attention_classes().items() for causal in (False, True)[: 1 + cls.supports_causal]
]


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
    assert count_without_running(build, n, c) == counted


FORMULAS: list[tuple[str, dict[str, Any], bool, int]] = [
    ("softmax", {}, False, 887880),
    ("symmetric", {}, False, 805560),
    ("scaled", {}, False, 1449840),
    ("rpc", {}, False, 2558640),
    ("primal", {}, False, 661920),
    ("tssa", {}, False, 185850),
    ("xca", {}, False, 391104),
    ("mssa", {}, False, 721560),
    ("class_attention", {}, False, 174972),
    ("linear", {}, False, 404880),
    ("performer", {}, False, 4534320),
    ("cosformer", {}, False, 462210),
    ("flowformer", {}, False, 423780),
    ("reformer", {}, False, 4689540),
    ("longformer", {}, False, 887880),
    ("bigbird", {}, False, 2755656),
    ("linformer", {}, False, 1358280),
    ("nystromformer", {}, False, 39904608),
    ("soft", {}, False, 29643159),
    ("yoso_e", {}, False, 903630),
    ("softmax", {"qkv_bias": False}, False, 882840),
    ("softmax", {"standardise": True}, False, 904680),
    ("symmetric", {"standardise": True}, False, 813960),
    ("rpc", {"convention": "reference", "iterations": 2}, False, 1404480),
    ("rpc", {"convention": "textbook", "iterations": 2}, False, 1404480),
    ("rpc", {"asymmetric": "iterate", "lambda": 0.1}, False, 2640960),
    ("primal", {"convention": "reference"}, False, 661920),
    ("primal", {"projection": "data-independent", "s": 3}, False, 299040),
    ("primal", {"scores": "e", "s": 3, "rank_multi": 2}, False, 290688),
    ("primal", {"repeat_rows": True, "s": 3}, False, 307680),
    ("primal", {"feature_map": "exp", "trace": "projected", "s": 3}, False, 378240),
    ("tssa", {"normalize": False}, False, 185850),
    ("mssa", {"qkv_bias": True}, False, 723240),
    ("scaled", {"variant": "matrix"}, False, 1124760),
    ("linear", {"convention": "reference"}, False, 399840),
    ("linear", {"convention": "reference", "feature_map": "cosine"}, False, 396480),
    ("performer", {"kernel": "relu", "features": 7}, False, 446880),
    ("performer", {"convention": "reference"}, False, 4534320),
    ("linformer", {"k": 4, "sharing": "headwise"}, False, 388080),
    ("linformer", {"k": 4, "sharing": "key-value"}, False, 388080),
    ("linformer", {"k": 4, "convention": "reference"}, False, 388080),
    ("nystromformer", {"landmarks": 4, "conv_kernel_size": 3}, False, 420768),
    ("nystromformer", {"landmarks": 4, "convention": "reference"}, False, 409008),
    ("soft", {"landmarks": 4}, False, 321024),
    ("longformer", {"window": 4}, False, 377160),
    ("longformer", {"window": 2, "global_tokens": 2}, False, 632100),
    ("bigbird", {"block_size": 2, "window_blocks": 1, "global_blocks": 1, "random_blocks": 1}, False, 393120),
    ("reformer", {"chunk": 4}, False, 542340),
    ("reformer", {"chunk": 4, "convention": "reference"}, False, 514692),
    ("yoso_e", {"gradient": "lower-bound", "conv_kernel_size": 3}, False, 915390),
    ("softmax", {}, True, 887880),
    ("symmetric", {}, True, 805560),
    ("scaled", {}, True, 1449840),
    ("rpc", {}, True, 2558640),
    ("tssa", {}, True, 189210),
    ("mssa", {}, True, 721560),
    ("linear", {}, True, 948780),
    ("performer", {}, True, 12369420),
    ("cosformer", {}, True, 1241310),
    ("flowformer", {}, True, 894180),
    ("reformer", {}, True, 9113220),
    ("longformer", {}, True, 887880),
    ("softmax", {"standardise": True}, True, 904680),
    ("symmetric", {"standardise": True}, True, 813960),
    ("rpc", {"convention": "reference", "lambda": 0.1}, True, 2558640),
    ("rpc", {"asymmetric": "iterate", "lambda": 0.1}, True, 2640960),
    ("primal", {"projection": "data-independent"}, True, 534240),
    ("primal", {"projection": "data-independent", "feature_map": "exp"}, True, 604800),
    ("tssa", {"convention": "reference"}, True, 189210),
    ("tssa", {"normalize": False}, True, 189210),
    ("scaled", {"variant": "matrix"}, True, 1124760),
    ("performer", {"kernel": "relu"}, True, 12046860),
    ("longformer", {"window": 4}, True, 361200),
    ("reformer", {"chunk": 3}, True, 694620),
]
"""Mechanism, options, causal or not, and its operations at 70 tokens of 24 in 3 heads."""


@pytest.mark.parametrize(("name", "options", "causal", "flops"), FORMULAS, ids=str)
def test_formulas_that_tables_of_cost_were_made_with(
    name: str, options: dict[str, Any], causal: bool, flops: int
) -> None:
    """A term that torch's counter does not see cannot change unnoticed: whoever changes a formula says so here."""
    module = build_attention(name, options, dim=24, heads=3, seq_len=70, causal=causal)
    assert count_flops(module, 70, 24).formula == flops


def test_every_mechanism_has_its_operations_written_down() -> None:
    assert {name for name, _, _, _ in FORMULAS} == set(attention_classes())


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


N, C, H, CLASSES = 4, 16, 2, 10
IMAGE: dict[str, Any] = {"channels": 1, "classes": CLASSES, "mean": (0.5,), "std": (0.5,)}


def vit(**attention: Any) -> nn.Module:
    model = Vit(patch_size=4, dim=C, depth=2, heads=H, mlp_ratio=2.0)
    return build_model(model, Attention(**attention), image_size=8, **IMAGE)


@pytest.mark.parametrize("name", ["softmax", "tssa"])
def test_a_tiny_vision_transformer(name: str) -> None:
    """Patches of 4 × 4 pixels, two blocks with an MLP of twice the width, the mean over patches, a linear head."""
    rest = 2 * N * 16 * C + 2 * (2 * 2 * N * C * 2 * C) + 2 * C * CLASSES
    layer = build_attention(name, {}, dim=C, heads=H, seq_len=N)
    products = {
        "softmax": 2 * N * C * 4 * C + 4 * N * N * C,
        "tssa": 2 * N * C * 2 * C + 2 * 2 * N * C,  # norms and second moments are products of w² with a vector
    }
    found = model_flops(vit(name=name), torch.zeros(1, 1, 8, 8))
    assert found.formulas == 2
    assert found.flops == rest + 2 * layer.flops(N)  # type: ignore[operator]
    assert found.matrix_products == rest + 2 * products[name]


def test_class_attention_sees_the_class_token_too(monkeypatch: pytest.MonkeyPatch) -> None:
    tost = Tost(patch_size=4, dim=C, depth=1, heads=H, class_depth=1)
    model = build_model(tost, Attention(name="tssa"), image_size=8, **IMAGE)
    without = model_flops(model, torch.zeros(1, 1, 8, 8))
    assert without.formulas == 2
    tokens = {"TokenStatisticsAttention": N, "ClassAttention": N + 1}
    formulas, asked = 0, dict[str, int]()
    for module in model.modules():
        if hasattr(module, "flops"):
            name, formula = type(module).__name__, module.flops
            formulas += formula(tokens[name])  # type: ignore[operator]
            monkeypatch.setattr(module, "flops", partial(asked.setdefault, name))
    changed = model_flops(model, torch.zeros(1, 1, 8, 8))
    assert asked == tokens
    assert changed.flops - (2 * N + 1) == without.flops - formulas


def test_nothing_is_computed_on_the_meta_device() -> None:
    """DeiT-tiny at 224 × 224: 1.26 G multiply-adds; RPC's Table 13 has 1.17 million flops."""

    def build() -> nn.Module:
        image: dict[str, Any] = {"channels": 3, "classes": 1000, "mean": (0.5,) * 3, "std": (0.5,) * 3}
        return build_model(
            TimmModel(name="deit_tiny_patch16_224"), Attention(name="softmax"), image_size=224, **image
        )  # fmt: skip

    found = model_flops_of(build, lambda: torch.empty(1, 3, 224, 224))
    n, c, products = 197, 192, 12 * (2 * 12 * 197 * 192**2 + 4 * 197**2 * 192)
    assert found.matrix_products == products + 2 * (n - 1) * 768 * c + 2 * c * 1000
    assert found.matrix_products / 2 == pytest.approx(1.26e9, rel=0.01)


class Stranger(nn.Module):
    """Without a formula, and it looks at its numbers, which have none on the meta device."""

    def __init__(self) -> None:
        super().__init__()
        self.map = nn.Linear(8, 8)

    def forward(self, x: Tensor) -> Tensor:
        return self.map(x) if x.abs().sum() >= 0 else x


def test_a_mechanism_of_ones_own() -> None:
    found = model_flops_of(Stranger, lambda: torch.ones(1, 5, 8))
    assert (found.flops, found.matrix_products, found.formulas) == (2 * 5 * 64, 2 * 5 * 64, 0)
