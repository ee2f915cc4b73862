"""Perplexity over sliding windows against a loop over tokens, one window at a time."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from kattn_cli.tasks.text import windows as perplexity
from kattn_cli.tasks.text.windows import Surprise, surprise, windows

CPU = torch.device("cpu")
V = 11
SIZES = [
    (2, 4, 1),
    (4, 5, 2),
    (5, 4, 1),
    (6, 4, 4),
    (9, 8, 3),
    (40, 1, 1),
    (40, 7, 1),
    (41, 7, 3),
    (43, 7, 7),
    (60, 8, 5),
]
"""Tokens T, window L and stride: T < L, T = L, T = L + 1, a last window that fits and one that does not."""


class Remembering:
    """A causal model whose logits depend on every token of the window, its order and its place there."""

    def __init__(self, vocabulary: int = V) -> None:
        draw = torch.Generator().manual_seed(0)
        self.of_token = torch.randn(vocabulary, vocabulary, generator=draw)
        self.of_place = torch.randn(64, vocabulary, generator=draw)
        self.shapes: list[tuple[int, ...]] = []

    def __call__(self, tokens: Tensor) -> Tensor:
        self.shapes.append(tuple(tokens.shape))
        so_far, logits = torch.zeros(len(tokens), len(self.of_token)), []
        for place, column in enumerate(tokens.T):
            so_far = 0.8 * so_far + self.of_token[column]
            logits.append(so_far + self.of_place[place])
        return torch.stack(logits, 1)


def text(length: int) -> np.ndarray:
    return np.random.default_rng(length).integers(0, V, length).astype(np.uint8)


def by_hand(model: Remembering, tokens: np.ndarray, length: int, stride: int) -> list[float]:
    """The loss of each token but the first; which window it is the last of, or among the last of, by arithmetic."""
    losses = []
    for asked in range(1, len(tokens)):
        if asked <= length:
            start = 0
        else:
            moved = -(-(asked - length) // stride)
            start = min(moved * stride, len(tokens) - 1 - length)
        logits = model(torch.tensor([tokens[start:asked].tolist()]))[0, -1].tolist()
        greatest = max(logits)
        total = greatest + math.log(sum(math.exp(one - greatest) for one in logits))
        losses.append(total - logits[tokens[asked]])
    return losses


@pytest.mark.parametrize(("tokens", "length", "stride"), SIZES)
def test_equals_a_loop_over_tokens(tokens: int, length: int, stride: int) -> None:
    model = Remembering()
    found = surprise(model, text(tokens), length=length, stride=stride, device=CPU)
    expected = torch.tensor(by_hand(model, text(tokens), length, stride), dtype=torch.float64)
    torch.testing.assert_close(found.losses, expected, rtol=1e-5, atol=1e-5)
    assert found.perplexity == pytest.approx(math.exp(expected.mean().item()), rel=1e-5)


@pytest.mark.parametrize(("tokens", "length", "stride"), SIZES)
def test_every_token_but_the_first_is_asked_for_once(tokens: int, length: int, stride: int) -> None:
    asked = [
        place for one in windows(tokens, length, stride) for place in range(one.stop + 1 - one.counted, one.stop + 1)
    ]
    assert asked == list(range(1, tokens))
    assert all(
        one.start >= 0 and one.stop - one.start == min(length, tokens - 1) for one in windows(tokens, length, stride)
    )


def test_with_stride_one_each_token_after_the_first_window_is_asked_by_as_many_as_it_holds() -> None:
    """002, A.4."""
    first, *others = windows(20, 6, 1)
    assert (first.start, first.stop, first.counted) == (0, 6, 6)
    assert [(one.start, one.stop, one.counted) for one in others] == [(place - 6, place, 1) for place in range(7, 20)]


def test_a_wider_stride_sees_less_and_a_wider_window_more() -> None:
    """Of a text that repeats itself after six tokens, which a window of that many tells and one of three does not."""

    def copying(tokens: Tensor) -> Tensor:
        seen = F.one_hot(F.pad(tokens, (5, 0))[:, : tokens.shape[1]], V).float()
        known = (torch.arange(tokens.shape[1]) >= 5)[None, :, None]
        return 20 * seen * known

    again = np.tile(np.arange(6), 10)
    losses = {
        (length, stride): surprise(copying, again, length=length, stride=stride, device=CPU).losses
        for length, stride in ((6, 1), (6, 6), (8, 3), (5, 1))
    }
    assert losses[6, 1][5:].max() < 1e-6
    assert losses[6, 1][:5].tolist() == pytest.approx([math.log(V)] * 5)
    assert losses[6, 6].mean() == pytest.approx(5 / 6 * math.log(V), rel=0.05)
    assert losses[8, 3][5:].max() < 1e-6
    assert losses[5, 1].tolist() == pytest.approx([math.log(V)] * 59)


def test_a_model_that_knows_nothing() -> None:
    """Perplexity V, and log₂ V bits a token, whatever bytes they stand for."""
    found = surprise(lambda tokens: torch.zeros(*tokens.shape, V), text(50), length=8, device=CPU)
    assert found.loss == pytest.approx(math.log(V))
    assert found.perplexity == pytest.approx(V)
    assert found.bits_per_byte(200) == pytest.approx(math.log2(V) * 49 / 200)


def test_right_and_among_five() -> None:
    """By how many logits are greater than the target's."""
    logits = torch.arange(V, 0, -1.0)
    tokens = np.array([3, 0, 4, 5, 0, 10])
    found = surprise(lambda seen: logits.expand(*seen.shape, V), tokens, length=4, device=CPU)
    assert found.right.tolist() == [True, False, False, True, False]
    assert found.among_five.tolist() == [True, True, False, True, False]


def test_progress_tells_how_many_were_asked() -> None:
    told: list[int] = []
    surprise(Remembering(), text(41), length=7, stride=3, device=CPU, progress=told.append)
    assert told == sorted(told)
    assert (told[0], told[-1]) == (7, 40)


def test_no_more_logits_at_once_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor tokens; and the numbers are the same."""
    whole = surprise(Remembering(), text(60), length=8, device=CPU)
    for name, limit, windows_at_once in (
        ("LOGITS_AT_ONCE", 3 * 8 * V, 3),
        ("TOKENS_AT_ONCE", 20, 2),
        ("LOGITS_AT_ONCE", 1, 1),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(perplexity, name, limit)
            model = Remembering()
            found = surprise(model, text(60), length=8, device=CPU)
            assert max(batch for batch, _ in model.shapes) == windows_at_once
            assert model.shapes[0] == (1, 8)
            torch.testing.assert_close(found.losses, whole.losses)


def test_what_cannot_be_asked() -> None:
    with pytest.raises(ValueError, match=r"^a text of one token has none to predict$"):
        surprise(Remembering(), text(1), length=4, device=CPU)
    for stride in (0, 5):
        with pytest.raises(ValueError, match=f"^the stride must be between 1 and the window's 4, not {stride}$"):
            surprise(Remembering(), text(9), length=4, stride=stride, device=CPU)


def test_surprise_by_hand() -> None:
    half, quarter = math.log(2), math.log(4)
    found = Surprise(torch.tensor([half, quarter], dtype=torch.float64), torch.ones(2), torch.ones(2))
    assert found.perplexity == pytest.approx(math.sqrt(8))
    assert found.bits_per_byte(6) == pytest.approx(0.5)
