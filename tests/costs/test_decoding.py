"""The costs of one more token: what a state holds, and how rounds become a ratio with an interval."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from kattn_cli.attention.options import build_attention
from kattn_cli.costs import decoding
from kattn_cli.costs.decoding import Generation, decoding_costs, feed, state_mib
from kattn_cli.costs.memory import MIB

OPTIONS: dict[str, dict[str, Any]] = {"primal": {"projection": "data-independent"}}


def built(name: str, seq_len: int = 512, dim: int = 16, heads: int = 2) -> nn.Module:
    options = OPTIONS.get(name, {})
    return build_attention(name, options, dim=dim, heads=heads, seq_len=seq_len, causal=True).eval()


@pytest.mark.parametrize(
    ("name", "entries"),
    [
        ("softmax", lambda n: 2 * n * 16),
        ("tssa", lambda n: 2 * 16 + 2),
        ("primal", lambda n: 2 * 16),
    ],
)
def test_what_is_kept(name: str, entries: Any) -> None:
    """Keys and values of every token; Σ w², Σ Π w² and Σ Π; Σ q and Σ k."""
    costs = decoding_costs(built(name), [128, 32], dim=16, batch=3, seconds=0)
    assert list(costs) == [32, 128]
    for context, cost in costs.items():
        assert cost.state_mib * MIB == pytest.approx(3 * 4 * entries(context))
        assert cost.milliseconds_low <= cost.milliseconds <= cost.milliseconds_high
        assert cost.spread == pytest.approx(cost.milliseconds_high - cost.milliseconds_low)
    assert costs[32].ratio == costs[32].ratio_low == costs[32].ratio_high == 1
    if name != "softmax":
        assert costs[32].peak_mib == costs[128].peak_mib > 0


def test_state_of_nested_parts() -> None:
    quarter = torch.zeros(MIB // 4, dtype=torch.float16)
    assert state_mib({"a": [quarter, (3, quarter[:0])], "b": None}) == 0.5


def test_contexts_are_fed_in_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoding, "FED_AT_ONCE", 10)
    sizes: list[int] = []

    class Counting(nn.Linear):
        def decode(self, x: Tensor, state: int | None = None) -> tuple[Tensor, int]:
            sizes.append(x.shape[1])
            return x, (state or 0) + x.shape[1]

    fed = dict(feed(Counting(4, 4), [25, 12, 30], dim=4, batch=1))
    assert fed == {12: 12, 25: 25, 30: 30}
    assert sizes == [10, 2, 10, 3, 5]


def test_a_context_does_not_drift_far() -> None:
    module = built("softmax")
    with torch.inference_mode():
        ((context, state),) = feed(module, [64], dim=16, batch=1)
        tokens = Generation(module, state, torch.zeros(1, 1, 16), context)
        lengths = []
        for _ in range(5):
            tokens.rewind()
            tokens()
            lengths.append(tokens.state[0].shape[-2])
    assert lengths == [65, 66, 67, 66, 67]


def test_ratios_are_of_one_round_each(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nine rounds: the interval of a median is from the second to the second last."""
    times = {16: [1.0] * 9, 64: [1.1, 1.3, 0.9, 1.2, 1.0, 1.7, 1.4, 1.6, 1.5]}

    class Scripted:
        def __init__(self, *_: object, globals: dict[str, Generation], **__: object) -> None:
            self.context = globals["token"].context
            self.given = iter([0.001, *(1e-3 * (k + 1) * value for k, value in enumerate(times[self.context]))])

        def timeit(self, number: int) -> Any:
            return type("Timing", (), {"mean": next(self.given)})

    monkeypatch.setattr(decoding, "Timer", Scripted)
    cost = decoding_costs(built("tssa"), [16, 64], dim=16, batch=1, seconds=0)[64]
    assert cost.rounds == 9
    assert (cost.ratio, cost.ratio_low, cost.ratio_high) == pytest.approx((1.3, 1.0, 1.6))
    assert cost.milliseconds == pytest.approx(5.0)


def test_what_does_not_fit_is_left_out() -> None:
    class Greedy(nn.Linear):
        def decode(self, x: Tensor, state: int | None = None) -> tuple[Tensor, int]:
            fed = (state or 0) + x.shape[1]
            return torch.ones(2**31 if fed > 48 else 1), fed

    costs = decoding_costs(Greedy(4, 4), [16, 64], dim=4, batch=1, seconds=0, limit=2**30)
    assert list(costs) == [16]


def test_other_errors_are_not_taken_for_a_lack_of_memory() -> None:
    with pytest.raises(ValueError, match="40 tokens, and it was built for 32"):
        decoding_costs(built("tssa", seq_len=32), [40], dim=16, batch=1, seconds=0)
