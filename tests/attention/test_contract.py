"""What every mechanism must do, whoever wrote it."""

from __future__ import annotations

import ast
import copy
import inspect
from pathlib import Path
from typing import Any

import pytest
import torch
from against_naive import draw
from mechanisms import first_tokens
from torch import nn
from torch.utils._pytree import tree_leaves

import kattn_cli
from kattn_cli.attention import ATTENTIONS, attention_classes
from kattn_cli.attention.options import all_options, build_attention
from kattn_cli.errors import RecipeError

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name in ATTENTIONS),
    ("softmax", {"qkv_bias": False}),
    ("softmax", {"standardise": True}),
    ("symmetric", {"standardise": True}),
    ("rpc", {"convention": "reference", "iterations": 2}),
    ("rpc", {"convention": "textbook", "iterations": 2}),
    ("rpc", {"asymmetric": "iterate", "lambda": 0.1}),
    ("primal", {"convention": "reference"}),
    ("primal", {"projection": "data-independent", "s": 3}),
    ("primal", {"scores": "e", "s": 3, "rank_multi": 2}),
    ("primal", {"repeat_rows": True, "s": 3}),
    ("primal", {"feature_map": "exp", "trace": "projected", "s": 3}),
    ("tssa", {"normalize": False}),
    ("mssa", {"qkv_bias": True}),
    ("scaled", {"variant": "matrix"}),
    ("linear", {"convention": "reference"}),
    ("linear", {"convention": "reference", "feature_map": "cosine"}),
    ("performer", {"kernel": "relu", "features": 7}),
    ("performer", {"convention": "reference"}),
    ("linformer", {"k": 4, "sharing": "headwise"}),
    ("linformer", {"k": 4, "sharing": "key-value"}),
    ("linformer", {"k": 4, "convention": "reference"}),
    ("nystromformer", {"landmarks": 4, "conv_kernel_size": 3}),
    ("nystromformer", {"landmarks": 4, "convention": "reference"}),
    ("soft", {"landmarks": 4}),
    ("longformer", {"window": 4}),
    ("longformer", {"window": 2, "global_tokens": 2}),
    ("bigbird", {"block_size": 2, "window_blocks": 1, "global_blocks": 1, "random_blocks": 1}),
    ("reformer", {"chunk": 4}),
    ("reformer", {"chunk": 4, "convention": "reference"}),
    ("yoso_e", {"gradient": "lower-bound", "conv_kernel_size": 3}),
]
CAUSAL_VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, {}) for name, cls in attention_classes().items() if cls.supports_causal and name != "primal"),
    ("softmax", {"standardise": True}),
    ("symmetric", {"standardise": True}),
    ("rpc", {"convention": "reference", "lambda": 0.1}),
    ("rpc", {"asymmetric": "iterate", "lambda": 0.1}),
    ("primal", {"projection": "data-independent"}),
    ("primal", {"projection": "data-independent", "feature_map": "exp"}),
    ("tssa", {"convention": "reference"}),
    ("tssa", {"normalize": False}),
    ("scaled", {"variant": "matrix"}),
    ("performer", {"kernel": "relu"}),
    ("longformer", {"window": 4}),
    ("reformer", {"chunk": 3}),
]
EQUIVARIANT = ["softmax", "symmetric", "scaled", "rpc", "tssa", "xca", "mssa"]
EQUIVARIANT += ["linear", "performer", "flowformer", "yoso_e"]
"""Mechanisms that permute their outputs with the tokens; primal does so where it does not depend on data."""
NO_MATRIX = ["tssa", "xca", "class_attention"]
ROWS_SUM_TO_ANYTHING = ["primal", "scaled", "cosformer", "flowformer", "linformer", "nystromformer", "soft", "yoso_e"]
each_variant = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
each_causal = pytest.mark.parametrize(("name", "options"), CAUSAL_VARIANTS, ids=str)
each_masked = pytest.mark.parametrize(
    ("name", "options"), [one for one in VARIANTS if one[1].get("convention") != "reference"], ids=str
)


def build(
    name: str, options: dict[str, Any], n: int, dtype: torch.dtype = torch.float64, causal: bool = False
) -> nn.Module:
    """The mechanism with every parameter away from where it starts, since some start at zero."""
    torch.manual_seed(0)
    module = build_attention(name, options, dim=24, heads=3, seq_len=n, causal=causal).to(dtype)
    with torch.no_grad():
        for parameter in module.parameters():
            parameter.add_(0.1 * torch.randn_like(parameter))
    return module


def loss_of(module: nn.Module, x: torch.Tensor) -> torch.Tensor:
    out = module(x)
    loss = (out * torch.linspace(-1, 1, out.numel(), dtype=out.dtype).reshape(out.shape)).sum()
    return loss + auxiliary_loss(module)


def auxiliary_loss(module: nn.Module) -> torch.Tensor:
    return module.auxiliary_loss() if hasattr(module, "auxiliary_loss") else torch.zeros(())  # type: ignore[operator]


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
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_autocast(name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    """Finite outputs and gradients, beside a sample of padding alone too, and near those of float32."""
    module = build(name, options, 13, torch.float32).eval()
    x, mask = torch.randn(2, 13, 24), first_tokens(13, 13, 0)
    with torch.autocast("cpu", dtype):
        out = module(x, mask)
    assert out.isfinite().all()
    out.float().square().sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())
    torch.testing.assert_close(out[0].float(), module(x, mask)[0], rtol=0.1, atol=0.1)


@each_variant
def test_can_be_copied_after_a_forward_pass(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9).eval()
    x = torch.randn(2, 9, 24, dtype=torch.float64)
    torch.testing.assert_close(copy.deepcopy(module)(x), module(x))


@each_variant
def test_attention_matrix(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9)
    if not hasattr(module, "attention_matrix"):
        assert name in NO_MATRIX
        return
    matrix = module.attention_matrix(draw(2, 9, 24))  # type: ignore[operator]
    assert matrix.shape == (2, 3, 9, 9)
    if name not in ROWS_SUM_TO_ANYTHING and options.get("convention") != "reference":
        torch.testing.assert_close(matrix.sum(-1), torch.ones(2, 3, 9, dtype=torch.float64))


@each_masked
def test_attention_matrix_of_padded_samples(name: str, options: dict[str, Any]) -> None:
    """It is each sequence's own among its tokens, and they see none of the padding."""
    module: Any = build(name, options, 9).eval()
    if not hasattr(module, "attention_matrix"):
        return
    x, lengths = draw(3, 9, 24), (9, 5, 1)
    matrix = module.attention_matrix(x, first_tokens(9, *lengths))
    for b, length in enumerate(lengths):
        alone = module.attention_matrix(x[b : b + 1, :length])[0]
        torch.testing.assert_close(matrix[b, :, :length, :length], alone, rtol=1e-9, atol=1e-9)
        assert not matrix[b, :, :length, length:].any()


@each_masked
def test_padding_changes_nothing(name: str, options: dict[str, Any]) -> None:
    """Outputs, gradients and the auxiliary term of a padded batch are those of each sequence by itself."""
    module = build(name, options, 13).eval()
    x, lengths = draw(3, 13, 24), (13, 6, 1)
    mask = first_tokens(13, *lengths)
    noisy = x + 100 * (~mask)[..., None]
    out = module(x, mask)
    torch.testing.assert_close(module(noisy, mask)[mask], out[mask], rtol=0, atol=0)
    term = auxiliary_loss(module)
    terms = []
    for b, length in enumerate(lengths):
        torch.testing.assert_close(out[b : b + 1, :length], module(x[b : b + 1, :length]), rtol=1e-9, atol=1e-9)
        terms.append(auxiliary_loss(module))
    torch.testing.assert_close(term, torch.stack(terms).mean(), rtol=1e-9, atol=1e-9)
    inputs = x.requires_grad_()
    module(inputs, mask)[mask].square().sum().backward()
    assert inputs.grad is not None
    assert not inputs.grad[~mask].any()


@each_variant
def test_a_mask_without_padding_is_no_mask(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9).eval()
    x = draw(2, 9, 24)
    expected = module(x)
    torch.testing.assert_close(module(x, torch.ones(2, 9, dtype=torch.bool)), expected, rtol=1e-9, atol=1e-9)


@each_variant
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_a_sample_of_padding_alone_harms_nobody(name: str, options: dict[str, Any], dtype: torch.dtype) -> None:
    module = build(name, options, 9, dtype).eval()
    x = torch.randn(2, 9, 24, dtype=dtype, requires_grad=True)
    out = module(x, first_tokens(9, 0, 5))
    assert out.isfinite().all()
    out.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in module.parameters())


@pytest.mark.parametrize(
    ("name", "options"),
    [*((name, {}) for name in EQUIVARIANT), ("primal", {"projection": "data-independent"})],
    ids=str,
)
def test_outputs_move_with_the_tokens(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9).eval()
    x, order = draw(2, 9, 24), torch.tensor([3, 0, 8, 1, 7, 2, 6, 4, 5])
    torch.testing.assert_close(module(x[:, order]), module(x)[:, order], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_causal_is_refused_where_there_is_no_such_form(name: str) -> None:
    if attention_classes()[name].supports_causal:
        assert name in [variant for variant, _ in CAUSAL_VARIANTS]
        return
    with pytest.raises(RecipeError, match=f"^attention {name}: has no causal form$"):
        build_attention(name, {}, dim=24, heads=3, seq_len=9, causal=True)


@each_causal
def test_causal_outputs_do_not_see_the_future(name: str, options: dict[str, Any]) -> None:
    module = build(name, options, 9, causal=True).eval()
    x = draw(2, 9, 24)
    for t in range(1, 9):
        changed = x.clone()
        changed[:, t:] += 1
        torch.testing.assert_close(module(x)[:, :t], module(changed)[:, :t], rtol=1e-12, atol=1e-12)
        assert not torch.allclose(module(x)[:, t:], module(changed)[:, t:])
        torch.testing.assert_close(module(x)[:, :t], module(x[:, :t]), rtol=1e-9, atol=1e-9)


@each_causal
@pytest.mark.parametrize("padded", ["right", "left"])
def test_causal_with_padding(name: str, options: dict[str, Any], padded: str) -> None:
    module = build(name, options, 9, causal=True).eval()
    x = draw(2, 9, 24)
    mask = first_tokens(9, 9, 5) if padded == "right" else first_tokens(9, 9, 5).flip(-1)
    out = module(x, mask)
    assert out.isfinite().all()
    torch.testing.assert_close(out[0], module(x)[0], rtol=1e-9, atol=1e-9)
    changed = x.masked_fill(~mask[..., None], 7.0)
    torch.testing.assert_close(module(changed, mask)[1, mask[1]], out[1, mask[1]], rtol=1e-9, atol=1e-9)
    alone = module(x[1:, mask[1]])[0]
    if options.get("variant") == "matrix" and padded == "left":
        # S belongs to positions, which padding at the left moves.
        assert not torch.allclose(out[1, mask[1]], alone)
    else:
        torch.testing.assert_close(out[1, mask[1]], alone, rtol=1e-9, atol=1e-9)


@each_causal
@pytest.mark.parametrize("chunks", [[1] * 9, [4, 1, 3, 1], [9]], ids=str)
def test_decoding_equals_all_at_once(name: str, options: dict[str, Any], chunks: list[int]) -> None:
    module = build(name, options, 9, causal=True).eval()
    if not hasattr(module, "decode"):
        assert name not in ("softmax", "primal", "tssa")
        return
    x, state, outputs = draw(2, 9, 24), None, []
    for chunk in x.split(chunks, 1):
        out, state = module.decode(chunk, state)  # type: ignore[operator]
        outputs.append(out)
    torch.testing.assert_close(torch.cat(outputs, 1), module(x), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [name for name, cls in attention_classes().items() if hasattr(cls, "decode")])
def test_only_causal_mechanisms_decode(name: str) -> None:
    with pytest.raises(ValueError, match="only a causal mechanism decodes"):
        build(name, {}, 9).decode(draw(1, 1, 24))  # type: ignore[operator]


@pytest.mark.parametrize("name", ["tssa", "primal"])
def test_state_of_linear_mechanisms_does_not_grow(name: str) -> None:
    options = {"projection": "data-independent"} if name == "primal" else {}
    module = build(name, options, 64, causal=True).eval()
    _, early = module.decode(draw(1, 2, 24))  # type: ignore[operator]
    _, late = module.decode(draw(1, 40, 24), early)  # type: ignore[operator]
    sizes = [[leaf.numel() for leaf in tree_leaves(state) if isinstance(leaf, torch.Tensor)] for state in (early, late)]
    assert sizes[0] == sizes[1]


@pytest.mark.parametrize("name", ATTENTIONS)
def test_constructor_is_the_contract(name: str) -> None:
    parameters = inspect.signature(attention_classes()[name].__init__).parameters
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
        tree = ast.parse(path.read_text(encoding="utf-8"))
        asked = {id(part) for node in ast.walk(tree) if isinstance(node, ast.Compare) for part in node.comparators}
        for node in ast.walk(tree):
            if id(node) in asked:
                continue  # which device this is may be asked
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
