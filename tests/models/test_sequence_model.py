"""Models of sequences as recipes build them: padding and neighbours in a batch, pairs, and what they can begin from."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from reference_vectors import assert_equal
from torch import Tensor, nn

from kattn_cli.attention import ATTENTIONS, attention_classes
from kattn_cli.data.sequences import Padded
from kattn_cli.errors import CheckpointError
from kattn_cli.models import (
    AttentionModel,
    LanguageModel,
    SequenceClassifier,
    auxiliary_loss,
    build_language_model,
    build_sequence_classifier,
)
from kattn_cli.models.initial import CHECKPOINTS, initialise_from
from kattn_cli.models.short_convolution import ShortConvolution
from kattn_cli.recipe.model import Decoder, Encoder
from kattn_cli.recipe.schema import Attention
from kattn_cli.runs.weights import weights_path
from kattn_cli.training.checkpoint import save_weights

LENGTHS = (9, 6, 2)
LONGEST, TOKENS, CLASSES = 9, 11, 4
SIZES: dict[str, Any] = {"dim": 24, "depth": 2, "heads": 3}
MEAN, STD = [0.5, -1.0, 2.0], [1.0, 2.0, 0.5]

SHORT: dict[str, dict[str, Any]] = {
    "primal": {"s": 2, "rank_multi": 2},
    "linformer": {"k": 3},
    "nystromformer": {"landmarks": 3},
    "soft": {"landmarks": 3},
    "longformer": {"window": 4},
    "bigbird": {"block_size": 2, "window_blocks": 1, "global_blocks": 1, "random_blocks": 1},
    "reformer": {"chunk": 3},
}
"""Options with which nine tokens are more than the mechanism takes at once."""

VARIANTS: list[tuple[str, dict[str, Any]]] = [
    *((name, SHORT.get(name, {})) for name in ATTENTIONS),
    ("primal", {"s": 2, "projection": "data-independent"}),
    ("rpc", {"convention": "reference", "lambda": 0.1}),
    ("rpc", {"asymmetric": "iterate", "lambda": 0.1}),
    ("scaled", {"variant": "matrix"}),
    ("linformer", {"k": 3, "convention": "reference"}),
]
CAUSAL: list[tuple[str, dict[str, Any]]] = [
    *(
        (name, {**SHORT, "longformer": {"window": 8}}.get(name, {}))
        for name, cls in attention_classes().items()
        if cls.supports_causal and name != "primal"
    ),
    ("primal", {"s": 2, "projection": "data-independent"}),
    ("primal", {"s": 2, "projection": "data-independent", "feature_map": "exp"}),
    ("primal", {"s": 2, "projection": "data-independent", "convention": "reference"}),
    ("tssa", {"convention": "reference"}),
    ("rpc", {"convention": "reference", "lambda": 0.1}),
]
SEEING_PADDING: list[tuple[str, dict[str, Any], str]] = [
    ("primal", {"s": 2, "rank_multi": 2}, "f(X) samples padding too, and J is a mean over it"),
    ("linear", {}, "features are over N^¼ of the padded length"),
    ("performer", {}, "masked keys stay in the denominator"),
    ("reformer", {"chunk": 3}, "padding is sorted among the tokens of its bucket"),
    (
        "nystromformer",
        {"landmarks": 3},
        "padding counts in the landmarks, and a maximum over the batch begins the inverse",
    ),
]
"""What the authors ran, in which padding is seen by definition."""

each_variant = pytest.mark.parametrize(("name", "options"), VARIANTS, ids=str)
each_causal = pytest.mark.parametrize(("name", "options"), CAUSAL, ids=str)


def away_from_the_start(model: Any) -> Any:
    """Every parameter moved, since some start at zero; float64."""
    model.double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def classifier(
    name: str, options: dict[str, Any] | None = None, *, decoder: bool = False, **changed: Any
) -> SequenceClassifier:
    torch.manual_seed(0)
    data = {"channels": 0, "vocabulary": TOKENS} if decoder else {"channels": 3, "vocabulary": 0}
    facts = {"seq_len": LONGEST, "classes": CLASSES, "pairs": False, "mean": MEAN, "std": STD, **data, **changed}
    kind = Decoder if decoder else Encoder
    return away_from_the_start(build_sequence_classifier(kind(**SIZES), Attention(name=name, **options or {}), **facts))


def series(lengths: tuple[int, ...] = LENGTHS) -> Padded:
    """With NaN at the padding."""
    mask = torch.arange(LONGEST) < torch.tensor(lengths)[:, None]
    values = torch.randn(len(lengths), LONGEST, 3, dtype=torch.float64)
    return Padded(values.masked_fill(~mask[..., None], torch.nan), mask)


def sentences(lengths: tuple[int, ...] = LENGTHS) -> Padded:
    mask = torch.arange(LONGEST) < torch.tensor(lengths)[:, None]
    return Padded(torch.randint(TOKENS, mask.shape), mask)


def alone(batch: Padded) -> list[Padded]:
    """Each sequence of a batch without its padding."""
    assert batch.mask is not None
    return [Padded(values[mask][None]) for values, mask in zip(batch.values, batch.mask, strict=True)]


def gradients(model: AttentionModel, batches: list[Padded]) -> tuple[Tensor, dict[str, Tensor]]:
    """Logits of all sequences, and the gradients of a sum over them."""
    model.zero_grad()
    logits = torch.cat([model(batch) for batch in batches])
    (logits * torch.linspace(-1, 1, logits.numel()).reshape(logits.shape)).sum().backward()
    return logits.detach(), {
        name: torch.zeros_like(one) if one.grad is None else one.grad.clone() for name, one in model.named_parameters()
    }


def check_padding(model: AttentionModel, batch: Padded) -> None:
    """Logits, gradients and auxiliary losses of a padded batch are those of its sequences by themselves."""
    logits, slopes = gradients(model, [batch])
    term = auxiliary_loss(model).item()
    expected, expected_slopes = gradients(model, alone(batch))
    assert_equal(logits, expected)
    for name, slope in slopes.items():
        assert slope.isfinite().all(), name
        torch.testing.assert_close(slope, expected_slopes[name], rtol=1e-8, atol=1e-10, msg=name)
    terms = []
    for one in alone(batch):
        model(one)
        terms.append(auxiliary_loss(model).item())
    assert term == pytest.approx(sum(terms) / len(terms), rel=1e-9)


@each_variant
def test_series_with_padding_are_as_without(name: str, options: dict[str, Any]) -> None:
    check_padding(classifier(name, options), series())


@each_variant
def test_a_longer_neighbour_changes_nothing(name: str, options: dict[str, Any]) -> None:
    """Nor does one that comes before: a sequence of three among shorter and longer ones."""
    model = classifier(name, options)
    values, others = series((3,)).values, series((9, 5))
    longer = Padded(
        torch.cat((others.values[:1], values, others.values[1:])), torch.arange(9) < torch.tensor([[9], [3], [5]])
    )
    shorter = Padded(longer.values[1:2, :4], torch.arange(4)[None] < 3)
    assert_equal(model(longer)[1:2], model(shorter))
    assert_equal(model(longer)[1:2], model(Padded(values[:, :3])))


@each_causal
def test_tokens_of_a_decoder_with_padding_are_as_without(name: str, options: dict[str, Any]) -> None:
    model = classifier(name, options, decoder=True)
    if options.get("convention") == "reference" and name == "primal":
        batch = sentences()
        assert_equal(model(batch), torch.cat([model(one) for one in alone(batch)]))  # its J is a mean over padding, too
    else:
        check_padding(model, sentences())


@each_causal
def test_a_decoder_classifies_by_the_last_token_which_has_seen_all(name: str, options: dict[str, Any]) -> None:
    model, batch = classifier(name, options, decoder=True), sentences()
    assert batch.mask is not None
    logits = model(batch)
    for place in (0, 3, 5):
        changed = batch.values.clone()
        changed[1, place] = (changed[1, place] + 1) % TOKENS
        differs = (model(Padded(changed, batch.mask)) - logits).abs().amax(1) > 1e-9
        assert differs.tolist() == [False, True, False]
    changed = batch.values.masked_fill(~batch.mask, 0)
    assert torch.equal(model(Padded(changed, batch.mask)), logits)


@pytest.mark.parametrize(("name", "options", "reason"), SEEING_PADDING)
def test_references_that_see_padding_by_definition(name: str, options: dict[str, Any], reason: str) -> None:
    """So that a convention that no longer does, or another that does, is noticed; the papers' own do not (above)."""
    model, batch = classifier(name, {**options, "convention": "reference"}), series()
    assert batch.mask is not None
    seen = Padded(batch.values.masked_fill(~batch.mask[..., None], 0), batch.mask)
    expected = torch.cat([model(one) for one in alone(batch)])
    assert (model(seen) - expected)[1:].abs().max() > 1e-6, reason


def test_objective_of_primal_attention_by_the_tokens_alone() -> None:
    """Paper: a sum over tokens, so the terms of one series with and without padding are the same and not scaled."""
    model, batch = classifier("primal", {"eta": 1.0}), series((5,))
    model(batch)
    padded = auxiliary_loss(model)
    model(alone(batch)[0])
    assert padded.item() == pytest.approx(auxiliary_loss(model).item(), rel=1e-12)
    model(Padded(batch.values.nan_to_num()))
    assert abs(padded.item() / auxiliary_loss(model).item() - 1) > 1e-3


def test_normalised_by_the_channels_of_the_training_set() -> None:
    model, batch = classifier("softmax"), series((9, 9))
    plain = classifier("softmax", mean=[0.0] * 3, std=[1.0] * 3)
    normalised = (batch.values - torch.tensor(MEAN)) / torch.tensor(STD)
    assert_equal(model(Padded(batch.values)), plain(Padded(normalised)))


def paired(values: Tensor, mask: Tensor | None) -> Padded:
    """Six sequences as three pairs."""
    return Padded(values.unflatten(0, (3, 2)), None if mask is None else mask.unflatten(0, (3, 2)))


@pytest.mark.parametrize("name", ["softmax", "primal", "tssa", "linformer"])
def test_pairs(name: str) -> None:
    """Each sequence is encoded by itself, and padding of one is nothing to the other; the order in a pair matters."""
    model = classifier(name, SHORT.get(name), channels=0, vocabulary=TOKENS, pairs=True)
    flat = sentences((9, 4, 2, 7, 5, 5))
    batch = paired(*flat)
    logits = model(batch)
    one, two = (
        torch.cat([model.backbone.mean(values, None) for values, _ in alone(flat)]).unflatten(0, (3, 2)).unbind(1)
    )
    assert_equal(logits, model.backbone.head(torch.cat((one, two, one * two, one - two), -1)))
    order = torch.tensor([2, 0, 1])
    assert batch.mask is not None
    assert_equal(model(Padded(batch.values[order], batch.mask[order])), logits[order])
    swapped = model(Padded(batch.values.flip(1), batch.mask.flip(1)))
    assert (swapped - logits).abs().amax(1).min() > 1e-6


def language_model(
    attention: str = "softmax", *, seq_len: int = 8, vocabulary: int = TOKENS, **options: Any
) -> LanguageModel:
    torch.manual_seed(1)
    chosen = Attention(name=attention, **options)
    return away_from_the_start(build_language_model(Decoder(**SIZES), chosen, seq_len=seq_len, vocabulary=vocabulary))


def test_a_decoder_with_layer_scale_and_norm_eps_by_its_equations() -> None:
    """As ToST's language model has them: γ in both branches of every block, ε in every norm, the last one's too."""
    sizes = {**SIZES, "layer_scale": 0.25, "norm_eps": 0.1}
    torch.manual_seed(1)
    model = build_language_model(Decoder(**sizes), Attention(name="softmax"), seq_len=8, vocabulary=TOKENS)
    state = dict(model.backbone.named_parameters())
    starts = [gamma.detach().unique().tolist() for name, gamma in state.items() if name.endswith("gamma")]
    assert starts == 4 * [[0.25]]
    state = dict(away_from_the_start(model).backbone.named_parameters())
    tokens = torch.randint(TOKENS, (2, 8))

    def norm(z: Tensor, name: str) -> Tensor:
        variance = z.var(-1, unbiased=False, keepdim=True)
        standard = (z - z.mean(-1, keepdim=True)) / (variance + 0.1).sqrt()
        return standard * state[f"{name}.weight"] + state[f"{name}.bias"]

    x = state["embed.weight"][tokens] + state["position"]
    for layer in range(2):
        block: Any = model.backbone.blocks[layer]
        x = x + state[f"blocks.{layer}.ls1.gamma"] * block.attn(norm(x, f"blocks.{layer}.norm1"))
        x = x + state[f"blocks.{layer}.ls2.gamma"] * block.mlp(norm(x, f"blocks.{layer}.norm2"))
    assert_equal(model(tokens), norm(x, "norm") @ state["embed.weight"].T)
    assert_equal(model.decode(tokens)[0], model(tokens))


def test_a_decoder_has_neither_by_default() -> None:
    model = language_model()
    assert not any("gamma" in name for name in model.state_dict())
    assert {module.eps for module in model.modules() if isinstance(module, nn.LayerNorm)} == {1e-6}


def saved(model: LanguageModel, folder: Path) -> str:
    """A run's folder with ``model`` for its checkpoint."""
    save_weights(weights_path(folder, "best"), model, {})
    return str(folder)


@pytest.mark.parametrize("seq_len", [5, 8, 12])
def test_a_classifier_begins_from_a_language_model(seq_len: int, tmp_path: Path) -> None:
    """Of more or fewer places; below its head it then says of its tokens what the language model says of them."""
    source, model = language_model(), classifier("softmax", decoder=True, seq_len=seq_len)
    before = {name: tensor.clone() for name, tensor in model.backbone.state_dict().items()}
    transfer = initialise_from(model, saved(source, tmp_path))
    assert list(transfer.initialised) == ["head.weight", "head.bias"]
    assert transfer.unused == []
    assert transfer.resized == ([] if seq_len == 8 else ["position"])
    places = model.backbone.position
    assert torch.equal(places[:8], source.backbone.position[:seq_len])
    assert torch.equal(places[8:], before["position"][8:])
    tokens = torch.randint(TOKENS, (2, min(seq_len, 8)))
    ours, theirs = (one.run(one.embedded(tokens)) for one in (model.backbone, source.backbone))
    assert torch.equal(ours, theirs)
    assert_equal(model(Padded(tokens)), model.backbone.head(theirs[:, -1]))


def test_rpc_begins_from_symmetric_attention(tmp_path: Path) -> None:
    """As 002 fine-tunes: its keys, values and output projection are those of the language model."""
    source = language_model("symmetric")
    model = classifier("rpc", {"iterations": 2, "lambda": 3.0}, decoder=True, seq_len=8)
    transfer = initialise_from(model, saved(source, tmp_path))
    assert (list(transfer.initialised), transfer.in_part, transfer.unused) == (["head.weight", "head.bias"], {}, [])
    for ours, theirs in zip(model.mechanisms(), source.mechanisms(), strict=True):
        for module in ("kv", "proj"):
            name = f"{module}.weight"
            assert torch.equal(ours.get_parameter(name), theirs.get_parameter(name))
    plain = classifier("symmetric", decoder=True, seq_len=8)
    initialise_from(plain, str(tmp_path))
    plain.backbone.head.load_state_dict(model.backbone.head.state_dict())
    tokens = Padded(torch.randint(TOKENS, (2, 8)))
    assert not torch.allclose(plain(tokens), model(tokens))
    once = classifier("rpc", {"iterations": 1, "lambda": 1e6}, decoder=True, seq_len=8)
    initialise_from(once, str(tmp_path))
    once.backbone.head.load_state_dict(model.backbone.head.state_dict())
    assert_equal(once(tokens), plain(tokens))  # S = 0, so that one iteration is symmetric attention


def test_a_vocabulary_of_another_size_is_refused(tmp_path: Path) -> None:
    model = classifier("softmax", decoder=True)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(CheckpointError) as caught:
        initialise_from(model, saved(language_model(vocabulary=13), tmp_path))
    assert str(caught.value) == (
        f"{tmp_path / CHECKPOINTS[0]}: has a vocabulary of 13 tokens, and the recipe's data one of 11; "
        "data.vocabulary_from takes that of a run"
    )
    assert all(torch.equal(tensor, before[name]) for name, tensor in model.state_dict().items())


@pytest.mark.parametrize("model", [Encoder(dim=24, heads=3), Decoder(dim=24, heads=3, depth=2)])
def test_queries_are_read_off_the_last_tokens_one_by_one(model: Encoder | Decoder) -> None:
    shapes: dict[str, Any] = {"classes": CLASSES, "channels": 0, "vocabulary": TOKENS, "pairs": False}
    built = build_sequence_classifier(
        model, Attention(name="softmax"), seq_len=LONGEST, queries=3, mean=(), std=(), **shapes
    ).eval()
    tokens = torch.randint(TOKENS, (2, LONGEST), generator=torch.Generator().manual_seed(0))
    seen: list[Tensor] = []
    built.backbone.norm.register_forward_hook(lambda *passed: seen.append(passed[-1]))
    logits = built(Padded(tokens))
    assert logits.shape == (2, 3, CLASSES)
    assert_equal(logits, built.backbone.head(seen[0][:, 6:]))
    changed = tokens.clone()
    changed[:, 7] = (changed[:, 7] + 1) % TOKENS
    same = torch.isclose(built(Padded(changed)), logits).all(-1)[0].tolist()
    assert same == ([True, False, False] if isinstance(model, Decoder) else [False, False, False])


def test_a_short_convolution_mixes_a_token_with_those_before_it_alone() -> None:
    convolution = ShortConvolution(2, 3).double()
    x = torch.randn(1, 5, 2, dtype=torch.float64)
    weight, bias = convolution.weight[:, 0], convolution.bias
    assert bias is not None
    before = torch.cat((torch.zeros(1, 2, 2).double(), x), 1)  # what stands before the first token counts as 0
    taps = torch.stack([weight[:, tap] * before[:, tap : tap + 5] for tap in range(3)])
    assert_equal(convolution(x), taps.sum(0) + bias)


def test_an_encoder_has_a_short_convolution_after_its_embedding_if_asked() -> None:
    shapes: dict[str, Any] = {"classes": CLASSES, "channels": 0, "vocabulary": TOKENS, "pairs": False}
    plain, mixed = (
        build_sequence_classifier(
            Encoder(dim=24, heads=3, convolution=width), Attention(name="softmax"), seq_len=9, mean=(), std=(), **shapes
        )
        for width in (None, 2)
    )
    assert "backbone.embed.weight" in dict(plain.named_parameters())  # as in the files of models without
    tokens = torch.randint(TOKENS, (2, 9))
    embedding, convolution = mixed.backbone.embed
    seen: list[Tensor] = []
    mixed.backbone.blocks[0].register_forward_pre_hook(lambda _, inputs: seen.append(inputs[0]))
    mixed(Padded(tokens))
    assert_equal(seen[0], convolution(embedding(tokens)) + mixed.backbone.position)
