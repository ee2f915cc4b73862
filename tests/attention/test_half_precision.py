"""Every mechanism in half precision computes what it does in float32, but for rounding: outputs and gradients."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from kattn_cli.attention import ATTENTIONS, attention_classes
from kattn_cli.attention.options import build_attention
from kattn_cli.kernels import reformer
from kattn_cli.kernels.pursuit import equations as pursuit

DIM, HEADS = 128, 2
SPREAD, RPC_SPREAD, NARROW = 2.0, 0.25, 0.5
"""Standard deviations of queries and keys: the usual one, that of RPC's keys about their offset, and the one of kernels
that a wider one leaves no numbers to compare: ``exp(−‖q − k‖²)``, say."""
OFFSET = 3.0
"""By which each of RPC's keys lies away from 0. Then ‖k‖₁ of 197 tokens is beyond float16, which ends at 65,504, and
attention is not of each token to itself alone, as it would be by a wider spread, whatever the threshold."""
OPTIONS: dict[str, dict[str, Any]] = {"rpc": {"lambda": 0.2}}
"""Where the defaults would hide what is measured: by λ = 4, τ is above all entries, and so is one twice as large."""
VARIANTS: list[tuple[str, dict[str, Any], bool]] = [
    *((name, {}, True) for name, cls in attention_classes().items() if cls.supports_causal and name != "rpc"),
    ("rpc", {"lambda": 0.1}, True),
    ("primal", {"convention": "reference"}, False),
    ("primal", {"feature_map": "exp"}, False),
    ("primal", {"feature_map": "exp"}, True),
    ("rpc", {"lambda": 0.05, "convention": "reference"}, False),
    ("rpc", {"lambda": 0.2, "convention": "textbook", "iterations": 2}, False),
    ("softmax", {"standardise": True}, False),
    ("symmetric", {"standardise": True}, False),
    ("scaled", {"variant": "matrix"}, False),
    ("linear", {"convention": "reference"}, False),
    ("linear", {"convention": "reference", "feature_map": "cosine"}, False),
    ("performer", {"convention": "reference"}, False),
    ("performer", {"kernel": "relu"}, False),
    ("nystromformer", {"convention": "reference"}, False),
    ("reformer", {"convention": "reference"}, False),
    ("yoso_e", {"gradient": "lower-bound"}, False),
]
each_type = pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
Results = dict[str, Tensor]


@each_type
@pytest.mark.parametrize("n", [197, 1025])
@pytest.mark.parametrize("name", ATTENTIONS)
def test_equals_float32(name: str, n: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch) -> None:
    check(name, OPTIONS.get(name, {}), n, dtype, monkeypatch)


@each_type
@pytest.mark.parametrize("n", [197, pytest.param(1025, marks=pytest.mark.slow)])
@pytest.mark.parametrize(("name", "options", "causal"), VARIANTS, ids=str)
def test_variants_equal_float32(
    name: str, options: dict[str, Any], causal: bool, n: int, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    check(name, options, n, dtype, monkeypatch, causal)


@each_type
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("factor", [2.0, float("inf")])
def test_a_wrong_threshold_would_be_seen(
    factor: float, causal: bool, dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    right = pursuit.threshold

    def wrong(k: Tensor, *settings: Any) -> Tensor:
        return right(k, *settings) * (factor if k.dtype == dtype else 1)

    monkeypatch.setattr(pursuit, "threshold", wrong)
    with pytest.raises(AssertionError, match="output"):
        check("rpc", {"lambda": 0.1 if causal else 0.2}, 197, dtype, monkeypatch, causal)


def check(
    name: str,
    options: dict[str, Any],
    n: int,
    dtype: torch.dtype,
    monkeypatch: pytest.MonkeyPatch,
    causal: bool = False,
) -> None:
    """Weights and inputs in half precision, and those of float32 under autocast, give what float32 gives.

    Errors are relative, in norm: 3 units in the last place for outputs, and 8 for gradients, where a rounded ReLU,
    threshold or weight of attention takes part twice.
    """
    module, x = drawn(name, options, n, dtype, causal)
    replay_hashes(monkeypatch)
    expected = results(module, x)
    for label, found in {
        "by itself": results(copy.deepcopy(module).to(dtype), x.to(dtype)),
        "autocast": results(module, x, dtype),
    }.items():
        assert found.keys() == expected.keys()
        for what, value in found.items():
            allowed = (3 if what == "output" else 8) * torch.finfo(dtype).eps
            error = (value - expected[what]).norm() / expected[what].norm()
            assert error < allowed, f"{what}, {label}: {float(error):.2g}, more than {allowed:.2g}"


def drawn(name: str, options: dict[str, Any], n: int, dtype: torch.dtype, causal: bool) -> tuple[nn.Module, Tensor]:
    """The mechanism and normalised tokens in float32, all of them numbers that ``dtype`` has too."""
    if name == "primal" and causal:
        options = {**options, "projection": "data-independent"}
    module = build_attention(name, options, dim=DIM, heads=HEADS, seq_len=n, causal=causal)
    with torch.no_grad():
        for key, parameter in module.named_parameters():
            if parameter.ndim != 2 and key not in ("e", "f", "s"):
                parameter.add_(0.1 * torch.randn_like(parameter))
            if key in ("qkv.weight", "kv.weight", "qk.weight", "u.weight"):
                parameter.copy_(spread(name, options) / DIM**0.5 * torch.randn_like(parameter))
            if name == "rpc" and key == "kv.bias":
                parameter[:DIM] = OFFSET * torch.randn(DIM).sign()
        for number in (*module.parameters(), *module.buffers()):
            number.copy_(number.to(dtype))
    return module, F.layer_norm(torch.randn(1, n, DIM), (DIM,)).to(dtype).float()


def spread(name: str, options: dict[str, Any]) -> float:
    if name == "rpc":
        return RPC_SPREAD
    return NARROW if name == "soft" or options.get("feature_map") == "exp" else SPREAD


def results(module: nn.Module, x: Tensor, autocast: torch.dtype | None = None) -> Results:
    """The output, the auxiliary term, and the gradients of the tokens and of all parameters."""
    module.zero_grad()
    x = x.clone().requires_grad_()
    with nullcontext() if autocast is None else torch.autocast("cpu", autocast):
        out = module(x)
        term = module.auxiliary_loss() if hasattr(module, "auxiliary_loss") else None  # type: ignore[operator]
    cotangent = torch.randn(out.shape, generator=torch.Generator().manual_seed(1)) / 10
    loss = (out.float() * cotangent).sum()
    found = {"output": out}
    if term is not None:
        found["auxiliary"] = term
        loss = loss + 1000 / term.item() * term  # neither lost beside the other, nor beyond float16
    loss.backward()
    found["input"] = x.grad
    found |= {key: p.grad for key, p in module.named_parameters() if p.grad is not None and p.numel()}
    return {key: value.detach().float() for key, value in found.items()}


def replay_hashes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave tokens in the buckets where they fell at first: a hash jumps, whoever rounds what it hashes."""
    right: Callable[..., Tensor] = reformer.lsh_buckets
    buckets: list[Tensor] = []

    def first(*arguments: Any) -> Tensor:
        if not buckets:
            buckets.append(right(*arguments))
        return buckets[0]

    monkeypatch.setattr(reformer, "lsh_buckets", first)
