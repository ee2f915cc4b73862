"""What every mechanism must do, whoever wrote it."""

from __future__ import annotations

import ast
import copy
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import kattn_cli
from kattn_cli.attention import ATTENTIONS
from kattn_cli.attention.options import all_options, build_attention

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ATTENTIONS),
    ("softmax", {"qkv_bias": False}),
    ("rpc", {"convention": "reference", "iterations": 2}),
    ("rpc", {"convention": "textbook", "iterations": 2}),
    ("rpc", {"asymmetric": "iterate", "lambda": 0.1}),
    ("primal", {"convention": "reference"}),
    ("primal", {"projection": "data-independent", "s": 3}),
    ("primal", {"scores": "e", "s": 3, "rank_multi": 2}),
    ("tssa", {"normalize": False}),
]
each_variant = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=lambda value: str(value))


def build(name: str, options: dict[str, Any], n: int, dtype: torch.dtype = torch.float64) -> nn.Module:
    torch.manual_seed(0)
    return build_attention(name, options, dim=24, heads=3, seq_len=n).to(dtype)


def loss_of(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    out = module(x)
    loss = (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)).sum()
    return loss + (module.auxiliary_loss() if hasattr(module, "auxiliary_loss") else 0)  # type: ignore[operator]


@each_variant
@pytest.mark.parametrize("n", [1, 2, 63])
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_shape_dtype_and_finiteness(name: str, options: dict[str, Any], n: int, dtype: torch.dtype) -> None:
    module = build(name, options, n, dtype)
    x = torch.randn(2, n, 24, dtype=dtype, requires_grad=True)
    out = module(x)
    assert out.shape == x.shape
    assert out.dtype == dtype
    loss_of(module, x).backward()
    assert out.isfinite().all()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


@each_variant
def test_every_parameter_receives_a_gradient(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9)
    loss_of(module, torch.randn(2, 9, 24, dtype=torch.float64)).backward()
    without = [key for key, p in module.named_parameters() if p.grad is None or not p.grad.abs().sum() > 0]
    assert not without


@each_variant
def test_samples_do_not_see_each_other(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9).eval()
    x = torch.randn(3, 9, 24, dtype=torch.float64)
    torch.testing.assert_close(module(x)[1:2], module(x[1:2]), rtol=1e-12, atol=1e-12)


@each_variant
def test_autocast_to_bfloat16(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9, torch.float32)
    x = torch.randn(2, 9, 24)
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x).isfinite().all()


@each_variant
def test_can_be_copied_after_a_forward_pass(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9).eval()
    x = torch.randn(2, 9, 24, dtype=torch.float64)
    torch.testing.assert_close(copy.deepcopy(module)(x), module(x))


@each_variant
def test_attention_matrix(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9)
    if not hasattr(module, "attention_matrix"):
        assert name == "tssa"
        return
    matrix = module.attention_matrix(torch.randn(2, 9, 24, dtype=torch.float64))  # type: ignore[operator]
    assert matrix.shape == (2, 3, 9, 9)
    if name != "primal":
        torch.testing.assert_close(matrix.sum(-1), torch.ones(2, 3, 9, dtype=torch.float64))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_causal_where_supported_and_refused_elsewhere(name: str) -> None:
    make = lambda: build_attention(name, {}, dim=24, heads=3, seq_len=9, causal=True).double()  # noqa: E731
    if not getattr(ATTENTIONS[name], "supports_causal"):  # noqa: B009 (a class constant that nn.Module lacks)
        with pytest.raises(kattn_cli.errors.RecipeError, match=r"causal form|no causal"):
            make()
        return
    module = make().eval()
    x = torch.randn(1, 9, 24, dtype=torch.float64)
    changed = x.clone()
    changed[:, 5:] += 1
    torch.testing.assert_close(module(x)[:, :5], module(changed)[:, :5], rtol=1e-12, atol=1e-12)
    assert not torch.allclose(module(x)[:, 5:], module(changed)[:, 5:])


@pytest.mark.parametrize("name", ATTENTIONS)
def test_constructor_is_the_contract(name: str) -> None:
    parameters = inspect.signature(ATTENTIONS[name].__init__).parameters
    assert list(parameters)[:5] == ["self", "dim", "heads", "seq_len", "causal"]
    assert all(p.kind is not p.VAR_KEYWORD for p in parameters.values())
    assert build_attention(name, all_options(name, {}), dim=24, heads=3, seq_len=9)


@each_variant
def test_works_on_the_meta_device(name: str, options: dict[str, Any]) -> None:
    """No tensor is put on a device of its own."""
    with torch.device("meta"):
        module = build_attention(name, options, dim=24, heads=3, seq_len=9)
    assert module(torch.empty(2, 9, 24, device="meta")).device.type == "meta"


@pytest.mark.parametrize("room", ["attention", "kernels", "models", "training", "attacks", "data"])
def test_no_device_is_written_into_code(room: str) -> None:
    for path in (Path(kattn_cli.__file__).parent / room).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
                assert node.func.attr != "cuda", path
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert not node.value.startswith("cuda"), path


@pytest.mark.gpu
@each_variant
def test_same_numbers_on_a_gpu(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 63)
    x = torch.randn(2, 63, 24, dtype=torch.float64)
    expected = module(x)
    torch.testing.assert_close(module.cuda()(x.cuda()).cpu(), expected, rtol=1e-9, atol=1e-9)
