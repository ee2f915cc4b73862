"""Which version computes."""

from __future__ import annotations

import os
import pkgutil
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from against_naive import draw, padding
from torch import Tensor

from kattn_cli import kernels
from kattn_cli.errors import KattnError
from kattn_cli.kernels import choice
from kattn_cli.kernels.block_sparse import block_sparse_attention
from kattn_cli.kernels.causal_tssa.operator import causal_tssa
from kattn_cli.kernels.choice import operators, version
from kattn_cli.kernels.flowformer import flow_attention
from kattn_cli.kernels.linear import elu_features, linear_attention
from kattn_cli.kernels.linformer import linformer_attention
from kattn_cli.kernels.longformer import sliding_window_attention
from kattn_cli.kernels.performer import softmax_features
from kattn_cli.kernels.primal.equations import cosine_scores
from kattn_cli.kernels.pursuit.equations import Pursuit, pap
from kattn_cli.kernels.reformer import lsh_attention
from kattn_cli.kernels.scaled import learned_scaled_values, symmetric_scaled_values
from kattn_cli.kernels.softmax import softmax_attention
from kattn_cli.kernels.tssa.operator import tssa
from kattn_cli.kernels.xca import xca

Q, K, V, MASK = draw(2, 3, 9, 4), draw(2, 3, 9, 4), draw(2, 3, 9, 4), padding(9)
BLOCKS = torch.tensor([[[0, 2, -1], [1, 0, 2], [2, 1, -1]]])


def performer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    phi_q, phi_k, log_weight = softmax_features(q, k, draw(6, 4))
    return linear_attention(phi_q, phi_k, v, mask=MASK, log_weight=log_weight)


OPERATORS: dict[str, tuple[str, str, Callable[[], Tensor]]] = {
    "softmax": ("softmax", "softmax_attention_naive", lambda: softmax_attention(Q, K, V, mask=MASK)),
    "learned scaling": ("scaled", "learned_scaling", lambda: learned_scaled_values(V, draw(3, 9, 9), mask=MASK)),
    "symmetric scaling": ("scaled", "symmetric_scaling", lambda: symmetric_scaled_values(K, V, draw(1), mask=MASK)),
    "pap": ("pursuit.equations", "pap_naive", lambda: pap(K, V, Pursuit(2, 0.2), mask=MASK)),
    "causal pap": ("pursuit.equations", "pap_naive", lambda: pap(K, V, Pursuit(2, 0.2, causal=True))),
    "tssa": ("tssa.operator", "tssa_naive", lambda: tssa(V, draw(3), mask=MASK)),
    "causal tssa": (
        "causal_tssa.operator",
        "causal_tssa_naive",
        lambda: causal_tssa(V, draw(3), draw(2, 3, 9, 1), mask=MASK),
    ),
    "primal scores": (
        "primal.equations",
        "primal_scores_naive",
        lambda: cosine_scores(Q, K, draw(2, 3, 5, 4), draw(3, 5, 2), draw(3, 5, 2))[0],
    ),
    "xca": ("xca", "xca_naive", lambda: xca(Q, K, V, draw(3), MASK)),
    "linear": (
        "linear",
        "linear_attention_naive",
        lambda: linear_attention(elu_features(Q), elu_features(K), V, mask=MASK, causal=True),
    ),
    "performer": ("linear", "linear_attention_naive", lambda: performer(Q, K, V)),
    "flowformer": ("flowformer", "flow_attention_naive", lambda: flow_attention(Q, K, V, mask=MASK)),
    "linformer": (
        "linformer",
        "linformer_attention_naive",
        lambda: linformer_attention(Q, K, V, draw(3, 5, 9), draw(3, 5, 9), mask=MASK),
    ),
    "longformer": (
        "longformer",
        "sliding_window_attention_naive",
        lambda: sliding_window_attention(Q, K, V, 4, global_keys=1, mask=MASK),
    ),
    "bigbird": (
        "block_sparse",
        "block_sparse_attention_naive",
        lambda: block_sparse_attention(Q, K, V, BLOCKS, 3, seeing_all=2, mask=MASK),
    ),
    "reformer": ("reformer", "lsh_attention_naive", lambda: lsh_attention(Q, K, V, draw(3, 2, 4, 3), 3, mask=MASK)),
}
"""By name: where the slow version is looked up, its name, and a call of the operator."""
ALONE = {
    "performer_naive": "features and operator at once, exponentials as printed",
    "cosformer_naive": "features and operator at once",
    "scaled_attention_naive": "scaled values, then softmax attention: two operators",
    "exp_features_naive": "a feature map: exponentials as printed leave float32's range",
    "segment_means_naive": "a part of nystrom_attention_naive",
    "nystrom_attention_naive": "with the inverse that the iteration approximates: other numbers",
    "soft_attention_naive": "with the inverse that the iteration approximates: other numbers",
    "yoso_naive": "the slow operator has the whole matrix at once; this has no least norm to divide by",
}
"""Slow versions that tests alone call, and why no operator does."""


def test_versions_nest() -> None:
    assert version() == "fast"
    with operators("slow"):
        assert version() == "slow"
        with operators("plain"):
            assert version() == "plain"
        assert version() == "slow"
    assert version() == "fast"


def test_an_unknown_version() -> None:
    message = 'KATTN_OPERATORS=slo: expected one of slow, plain, fast; did you mean "slow"'
    with pytest.raises(KattnError, match=message), operators("slo"):
        pass


def test_the_environment_chooses() -> None:
    code = "from kattn_cli.kernels.choice import version; print(version())"
    environment = {**os.environ, "KATTN_OPERATORS": "slow"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "slow\n"


def counted(monkeypatch: pytest.MonkeyPatch, place: str, name: str) -> list[str]:
    """What the function of a module adds to whenever it is called."""
    module = import_module(f"kattn_cli.kernels.{place}")
    calls: list[str] = []
    function = getattr(module, name)

    def counting(*arguments: Any, **options: Any) -> Any:
        calls.append(version())
        return function(*arguments, **options)

    monkeypatch.setattr(module, name, counting)
    return calls


@pytest.mark.parametrize("operator", OPERATORS)
def test_slow_operators_are_the_equations_and_others_are_not(operator: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the same numbers at the tokens."""
    place, name, call = OPERATORS[operator]
    calls, outputs = counted(monkeypatch, place, name), []
    monkeypatch.setattr(choice, "SMALL", 0)
    for chosen in ("slow", "plain", "fast"):
        torch.manual_seed(1)
        with operators(chosen):
            outputs.append(call())
    assert set(calls) == {"slow"}
    there = MASK[:, None, :, None]
    for out in outputs[1:]:
        torch.testing.assert_close(out * there, outputs[0] * there, rtol=1e-9, atol=1e-9)


def test_every_slow_version_is_that_of_an_operator() -> None:
    found = set()
    for module in pkgutil.walk_packages(kernels.__path__, "kattn_cli.kernels."):
        if "triton" not in module.name:
            names = vars(import_module(module.name))
            found |= {name for name in names if name.endswith("_naive") and not name.startswith("_")}
    assert found == {name for _, name, _ in OPERATORS.values() if name.endswith("_naive")} | set(ALONE)


@pytest.mark.parametrize(
    ("kind", "entries", "columns", "expected"),
    [
        ("cuda", 1, 1, "triton"),
        ("cuda", 1, choice.WIDEST, "triton"),
        ("cuda", 1, choice.WIDEST + 1, "none"),
        ("cuda", 0, 1, "none"),
        ("cpu", choice.SMALL, 1, "C"),
        ("cpu", choice.SMALL - 1, 1, "none"),
        ("meta", choice.SMALL, 1, "none"),
    ],
)
def test_which_kernel_is_made_for_what(
    monkeypatch: pytest.MonkeyPatch, kind: str, entries: int, columns: int, expected: str
) -> None:
    """On devices that need not be here: all that is asked of a tensor is its device and size."""
    z: Any = SimpleNamespace(device=torch.device(kind), numel=lambda: entries)
    for there in (True, False):
        monkeypatch.setattr(choice, "_has_triton", lambda there=there: there)
        monkeypatch.setattr(choice.build, "available", lambda there=there: there)
        assert choice.kernel_for(z, columns) == (expected != "none" and there)
        for other in ("plain", "slow"):
            with operators(other):
                assert not choice.kernel_for(z, columns)
