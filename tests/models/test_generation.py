"""Generation: with state as from scratch, token for token; what a state holds; how a token is chosen."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from kattn_cli.attention import attention_classes
from kattn_cli.attention.options import build_attention
from kattn_cli.models.generation import Reading, choose, decodes, generate
from kattn_cli.models.sequence_model import CausalDecoder, LanguageModel

DIM, HEADS, VOCABULARY, CONTEXT = 24, 3, 17, 16
CAUSAL = [name for name, cls in attention_classes().items() if cls.supports_causal]
DECODING = [name for name in CAUSAL if hasattr(attention_classes()[name], "decode")]
OPTIONS: dict[str, dict[str, Any]] = {
    "primal": {"projection": "data-independent"},
    "longformer": {"window": 6},
    "reformer": {"chunk": 4},
}
PROMPT = [3, 1, 4, 1, 5]


def language_model(*names: str, context: int = CONTEXT) -> LanguageModel:
    """Two layers in float64, whose weights are large enough for what was said before to count."""
    torch.manual_seed(0)
    sizes = {"dim": DIM, "heads": HEADS, "seq_len": context}
    mechanisms = [build_attention(name, OPTIONS.get(name, {}), **sizes, causal=True) for name in (names * 2)[:2]]
    model = LanguageModel(CausalDecoder(mechanisms, dim=DIM, seq_len=context, vocabulary=VOCABULARY))
    for module in model.backbone.blocks.modules():
        if isinstance(module, nn.Linear):
            nn.init.normal_(module.weight, std=0.5)
    nn.init.normal_(model.backbone.embed.weight, std=0.3)
    nn.init.normal_(model.backbone.position, std=0.3)
    return model.double().eval()


def said(model: LanguageModel, count: int, temperature: float = 1.0, top_k: int | None = None, **how: Any) -> list[int]:
    generator = np.random.default_rng(0)
    return list(generate(model, PROMPT, count, temperature=temperature, top_k=top_k, generator=generator, **how))


@torch.no_grad()
def by_hand(model: LanguageModel, count: int, temperature: float) -> list[int]:
    """All that is seen read again for each token, from the last half of the context on where it is full."""
    generator, seen, new = np.random.default_rng(0), list(PROMPT), []
    for _ in range(count):
        if len(seen) > CONTEXT:
            seen = seen[-CONTEXT // 2 :]
        new.append(choose(model(torch.tensor([seen]))[0, -1], temperature, None, generator))
        seen.append(new[-1])
    return new


@pytest.mark.parametrize("temperature", [0.0, 1.0])
@pytest.mark.parametrize("name", CAUSAL)
def test_token_for_token(name: str, temperature: float) -> None:
    """As from scratch by hand, far past the context; with state where the mechanism decodes."""
    model = language_model(name)
    count = 3 * CONTEXT
    expected = by_hand(model, count, temperature)
    assert said(model, count, temperature) == expected
    assert said(model, count, temperature, with_state=False) == expected
    assert decodes(model) == (name in DECODING)
    assert len(set(expected)) >= (6 if temperature else 2)


def test_one_mechanism_without_state_is_enough() -> None:
    model = language_model("softmax", "rpc")
    assert not decodes(model)
    assert said(model, CONTEXT) == by_hand(model, CONTEXT, 1.0)


def held(state: object) -> int:
    """Bytes of the storages that a state keeps alive."""
    if isinstance(state, Tensor):
        return state.untyped_storage().nbytes()
    return sum(map(held, state)) if isinstance(state, list | tuple) else 0


def held_after(name: str, *pieces: int) -> int:
    reading = Reading(language_model(name, context=64), with_state=True)
    for piece in pieces:
        reading.read([2] * piece)
    return held(reading.state)


@pytest.mark.parametrize("name", ["tssa", "primal"])
def test_state_of_constant_size(name: str) -> None:
    """Whether the text came at once or by tokens: Σ w², Σ Π w² and Σ Π, or Σ q and Σ k, in each of two layers."""
    numbers = {"tssa": 2 * DIM + HEADS, "primal": 2 * DIM}[name]
    assert [held_after(name, 4), held_after(name, 64), held_after(name, *[1] * 64)] == [2 * 8 * numbers] * 3


def test_state_of_softmax_grows() -> None:
    """Keys and values of every token, in each of two layers."""
    assert [held_after("softmax", 4), held_after("softmax", 64)] == [2 * 8 * 2 * DIM * n for n in (4, 64)]


def test_past_the_context_half_of_it_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    model = language_model("softmax")
    pieces: list[list[int]] = []
    usual = model.decode

    def watched(tokens: Tensor, state: Any = None) -> Any:
        pieces.append(tokens[0].tolist())
        return usual(tokens, state)

    monkeypatch.setattr(model, "decode", watched)
    new = said(model, 40)
    text = [*PROMPT, *new]
    anew = range(CONTEXT, len(text), CONTEXT // 2 + 1)
    fed = {at: CONTEXT // 2 if at in anew else 1 for at in range(len(PROMPT), len(text) - 1)}
    expected = [PROMPT] + [text[at + 1 - count : at + 1] for at, count in fed.items()]
    assert pieces == expected


def test_a_context_of_one_token() -> None:
    model = language_model("softmax", context=1)
    generator = np.random.default_rng(0)
    new = list(generate(model, [3], 9, temperature=0.0, top_k=None, generator=generator))
    with torch.no_grad():
        follows = model(torch.arange(VOCABULARY)[:, None])[:, 0].argmax(-1).tolist()
    assert new == [follows[token] for token in [3, *new[:-1]]]


@pytest.mark.parametrize(
    ("prompt", "message"), [([], "the prompt is empty"), ([1] * 17, "17 tokens, and it was built for 16")]
)
def test_prompts_that_cannot_be_read(prompt: Sequence[int], message: str) -> None:
    """Said at once, before the first token is asked for."""
    with pytest.raises(ValueError, match=message):
        generate(language_model("tssa"), prompt, 1, temperature=1.0, top_k=None, generator=np.random.default_rng(0))


def test_the_same_seed_says_the_same() -> None:
    model = language_model("tssa")
    other = generate(model, PROMPT, 20, temperature=1.0, top_k=None, generator=np.random.default_rng(1))
    assert said(model, 20) == said(model, 20)
    assert list(other) != said(model, 20)


LOGITS = torch.tensor([0.1, 0.4, 0.2, 0.3], dtype=torch.float64).log()


def shares(logits: Tensor = LOGITS, temperature: float = 1.0, top_k: int | None = None) -> np.ndarray:
    generator = np.random.default_rng(0)
    drawn = [choose(logits, temperature, top_k, generator) for _ in range(4000)]
    return np.bincount(drawn, minlength=len(logits)) / len(drawn)


@pytest.mark.parametrize(
    ("temperature", "top_k", "expected"),
    [
        (1.0, None, [0.1, 0.4, 0.2, 0.3]),
        (1.0, 9, [0.1, 0.4, 0.2, 0.3]),
        (1.0, 2, [0, 4 / 7, 0, 3 / 7]),
        (0.5, None, [1 / 30, 16 / 30, 4 / 30, 9 / 30]),
        (1e9, 3, [0, 1 / 3, 1 / 3, 1 / 3]),
        (1e-300, None, [0, 1, 0, 0]),
        (0.0, None, [0, 1, 0, 0]),
        (1.0, 1, [0, 1, 0, 0]),
    ],
)
def test_chances_by_hand(temperature: float, top_k: int | None, expected: list[float]) -> None:
    """Shares of 4,000 draws, whose deviation is at most 0.008; what has no chance is never drawn."""
    found = shares(temperature=temperature, top_k=top_k)
    np.testing.assert_allclose(found, expected, atol=0.03)
    assert not found[np.array(expected) == 0].any()


def test_what_is_impossible_is_never_drawn() -> None:
    """Not at the ends of what is drawn from, either."""

    class Ends:
        def __init__(self, number: float) -> None:
            self.number = number

        def random(self) -> float:
            return self.number

    logits = torch.tensor([-torch.inf, 0.0, 0.0, -torch.inf], dtype=torch.float64)
    drawn = [choose(logits, 1.0, None, Ends(number)) for number in (0.0, 0.49, 0.5, 1 - 2**-53)]  # type: ignore[arg-type]
    assert drawn == [1, 1, 2, 2]
