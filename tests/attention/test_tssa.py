"""TSSA against the authors' numbers and its equations."""

from __future__ import annotations

import pytest
import torch
from reference_vectors import check_forward_backward, fill, load, names

from kattn_cli.attention.tssa import TokenStatisticsAttention
from kattn_cli.kernels.causal_tssa.operator import causal_tssa
from kattn_cli.kernels.tssa.operator import tssa

pytestmark = pytest.mark.usefixtures("each_version")

THEIRS = {
    "u.weight": "qkv.weight",
    "u.bias": "qkv.bias",
    "eta": "temp",
    "proj.weight": "to_out.0.weight",
    "proj.bias": "to_out.0.bias",
}


@pytest.mark.parametrize("name", names("tssa__"))
def test_equals_the_authors_program(name: str) -> None:
    vector = load(name)
    module = TokenStatisticsAttention(24, 2, seq_len=16)
    check_forward_backward(fill(module, vector, THEIRS), vector, THEIRS)


CAUSAL = {
    "u.weight": "c_attn.weight",
    "u.bias": "c_attn.bias",
    "eta": "temp",
    "position_bias": "denom_bias",
    "proj.weight": "c_proj.weight",
    "proj.bias": "c_proj.bias",
}


@pytest.mark.parametrize("name", names("tssa_causal__"))
def test_causal_form_equals_the_authors_program(name: str) -> None:
    vector = load(name)
    module = TokenStatisticsAttention(24, 2, seq_len=int(vector["hp_block_size"]), causal=True, convention="reference")
    check_forward_backward(fill(module, vector, CAUSAL), vector, CAUSAL)


def test_conventions_are_the_same_at_the_start_and_differ_after_it() -> None:
    """The bias of a position starts at zero; added once (eq. 34) or d times (Algorithm 2), d = 12 here."""
    vector = load("tssa_causal__T16_bs16_C24_h2")
    ours, theirs = (
        fill(TokenStatisticsAttention(24, 2, seq_len=16, causal=True, convention=convention), vector, CAUSAL)
        for convention in ("paper", "reference")
    )
    x = vector["x"]
    assert not torch.allclose(ours(x), theirs(x))
    with torch.no_grad():
        ours.get_parameter("position_bias").mul_(12)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-12, atol=1e-12)
    for module in (ours, theirs):
        torch.nn.init.zeros_(module.get_parameter("position_bias"))
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-12, atol=1e-12)


def test_first_token_of_the_causal_form_by_hand() -> None:
    """t = 1: every ŵ² is 1, Π = ½ for each of two heads, m = w² (but for 1e-8), so out = −w/2 / (1 + w²)."""
    w = torch.tensor([[[[2.0, 1.0]], [[3.0, -1.0]]]], dtype=torch.float64)
    found = causal_tssa(w, torch.ones(2, dtype=torch.float64), torch.zeros(1, 2, 1, 1, dtype=torch.float64))
    assert found.flatten().tolist() == pytest.approx([-1 / 5, -0.5 / 2, -1.5 / 10, 0.5 / 2], rel=1e-6)


def test_positions_past_the_last_are_refused() -> None:
    module = TokenStatisticsAttention(24, 2, seq_len=4, causal=True)
    with pytest.raises(ValueError, match="5 tokens, and it was built for 4"):
        module(torch.zeros(1, 5, 24))
    _, state = module.decode(torch.zeros(1, 4, 24))
    with pytest.raises(ValueError, match="5 tokens, and it was built for 4"):
        module.decode(torch.zeros(1, 1, 24), state)


def test_one_token_by_hand() -> None:
    """N = 1: ŵ² = 1, so Π = ½ for each of two heads, m = w² (but for 1e-8), out = −w/2 / (1 + w²)."""
    w = torch.tensor([[[[2.0]], [[3.0]]]], dtype=torch.float64)
    found = tssa(w, torch.ones(2, dtype=torch.float64))
    assert found.flatten().tolist() == pytest.approx([-1.0 / 5, -1.5 / 10], rel=1e-6)
