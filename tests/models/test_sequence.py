"""Backbones for sequences with every mechanism: padding, causality, and decoding token by token."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from reference_vectors import assert_equal
from torch import nn

from kattn_cli.attention import ATTENTIONS, attention_classes
from kattn_cli.attention.options import build_attention
from kattn_cli.models.sequence_model import CausalDecoder, SequenceEncoder, sinusoids

DIM, HEADS, LENGTH, DEPTH = 24, 3, 9, 2
CAUSAL = [name for name, cls in attention_classes().items() if cls.supports_causal]
DECODING = [name for name in CAUSAL if hasattr(attention_classes()[name], "decode")]
CAUSAL_OPTIONS: dict[str, dict[str, Any]] = {"primal": {"projection": "data-independent"}}


def mechanisms(name: str, causal: bool = False) -> list[nn.Module]:
    torch.manual_seed(0)
    options = CAUSAL_OPTIONS.get(name, {}) if causal else {}
    sizes = {"dim": DIM, "heads": HEADS, "seq_len": LENGTH}
    return [build_attention(name, options, **sizes, causal=causal) for _ in range(DEPTH)]


def encoder(name: str, embed: nn.Module, **options: Any) -> SequenceEncoder:
    return SequenceEncoder(mechanisms(name), embed, dim=DIM, seq_len=LENGTH, classes=4, **options).double().eval()


def decoder(name: str) -> CausalDecoder:
    return CausalDecoder(mechanisms(name, causal=True), dim=DIM, seq_len=LENGTH, vocabulary=11).double().eval()


@pytest.mark.parametrize("name", ATTENTIONS)
def test_padding_changes_nothing(name: str) -> None:
    """Neither what stands there, nor that it is there."""
    model = encoder(name, nn.Linear(5, DIM))
    inputs = torch.randn(2, LENGTH, 5, dtype=torch.float64)
    mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [6]])
    logits = model(inputs, mask)
    other = inputs.masked_fill(~mask[..., None], 100.0)
    assert_equal(model(other, mask), logits)
    assert_equal(model(inputs[1:, :6]), logits[1:])
    assert not torch.allclose(model(inputs), logits)


@pytest.mark.parametrize("name", ATTENTIONS)
def test_encoder_of_tokens_trains(name: str) -> None:
    model = encoder(name, nn.Embedding(11, DIM), position="learned").float().train()
    logits = model(torch.randint(11, (2, LENGTH)))
    assert logits.shape == (2, 4)
    logits.square().sum().backward()
    unused = [key for key, parameter in model.named_parameters() if parameter.grad is None]
    assert all(key.endswith("attn.regulariser") for key in unused)


@pytest.mark.parametrize("name", CAUSAL)
def test_decoder_does_not_see_what_follows(name: str) -> None:
    model = decoder(name)
    tokens = torch.randint(11, (2, LENGTH))
    changed = torch.cat((tokens[:, :5], (tokens[:, 5:] + 1) % 11), 1)
    before, after = model(tokens), model(changed)
    assert_equal(after[:, :5], before[:, :5])
    assert ((after[:, 5:] - before[:, 5:]).abs().amax((0, 2)) > 1e-6).all()


@pytest.mark.parametrize("name", DECODING)
@pytest.mark.parametrize("chunks", [[1] * LENGTH, [4, 1, 4]])
def test_decoding_equals_all_at_once(name: str, chunks: list[int]) -> None:
    model = decoder(name)
    tokens = torch.randint(11, (2, LENGTH))
    state, logits = None, []
    for chunk in tokens.split(chunks, 1):
        out, state = model.decode(chunk, state)
        logits.append(out)
    assert_equal(torch.cat(logits, 1), model(tokens))


def test_too_long_a_text() -> None:
    model = decoder("softmax")
    _, state = model.decode(torch.zeros(1, LENGTH, dtype=torch.long))
    with pytest.raises(ValueError, match="10 tokens, and it was built for 9"):
        model.decode(torch.zeros(1, 1, dtype=torch.long), state)


@pytest.mark.parametrize(
    ("depth", "dim", "heads", "millions"), [(12, 768, 12, 110), (24, 1024, 16, 304), (36, 1280, 20, 655)]
)
def test_parameter_counts_of_the_language_models(depth: int, dim: int, heads: int, millions: float) -> None:
    """ToST paper, Table 6, with GPT-2's vocabulary and 1,024 positions."""
    with torch.device("meta"):
        layers = [build_attention("tssa", {}, dim=dim, heads=heads, seq_len=1024, causal=True) for _ in range(depth)]
        model = CausalDecoder(layers, dim=dim, seq_len=1024, vocabulary=50_257)
    assert sum(parameter.numel() for parameter in model.parameters()) / 1e6 == pytest.approx(millions, rel=0.005)


def test_sinusoids_by_hand() -> None:
    angles = torch.tensor([[0.0, 0.0], [1.0, 0.01], [2.0, 0.02]])
    expected = torch.stack((angles.sin(), angles.cos()), -1).flatten(1)
    torch.testing.assert_close(sinusoids(3, 4), expected)
    assert sinusoids(3, 5).shape == (3, 5)


def test_longer_inputs_than_the_encoder_knows_are_refused() -> None:
    with pytest.raises(ValueError, match="10 tokens, and it was built for 9"):
        encoder("softmax", nn.Linear(3, DIM))(torch.zeros(1, 10, 3, dtype=torch.float64))


@pytest.mark.parametrize("name", ATTENTIONS)
def test_padding_that_is_not_a_number(name: str) -> None:
    """As series of different lengths are often stored: neither logits nor gradients take it up."""
    model = encoder(name, nn.Linear(3, DIM))
    inputs, mask = torch.randn(2, LENGTH, 3, dtype=torch.float64), torch.arange(LENGTH) < torch.tensor([[LENGTH], [5]])
    expected = model(inputs, mask)
    logits = model(inputs.masked_fill(~mask[..., None], float("nan")), mask)
    assert_equal(logits, expected)
    logits.sum().backward()
    assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())
