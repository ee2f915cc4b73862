"""Mixtures of experts against a loop over tokens and experts: outputs, gradients, places, and what is counted."""

from __future__ import annotations

import copy
import math
from typing import Any

import pytest
import torch
from reference_vectors import assert_equal
from torch import Tensor, nn

from kattn_cli.attention.options import build_attention
from kattn_cli.costs.flops import model_flops_of
from kattn_cli.models import auxiliary_loss, build_language_model, build_sequence_classifier
from kattn_cli.models.blocks import Block
from kattn_cli.models.experts import SparseExperts
from kattn_cli.models.sequence_model import CausalDecoder, SequenceEncoder
from kattn_cli.recipe.model import Decoder, Encoder
from kattn_cli.recipe.schema import Attention

DIM, HIDDEN, LENGTH = 8, 12, 7
OPTIONS = {"count": 5, "top": 2, "balance": 0.1}


def experts(**options: Any) -> SparseExperts:
    torch.manual_seed(0)
    module = SparseExperts(DIM, HIDDEN, **{**OPTIONS, **options}).double()
    nn.init.normal_(module.router.weight)
    return module


def inputs(length: int = LENGTH) -> Tensor:
    return torch.randn(3, length, DIM, dtype=torch.float64, generator=torch.Generator().manual_seed(1))


def padding() -> Tensor:
    return torch.arange(LENGTH) < torch.tensor([[LENGTH], [4], [1]])


def slow(module: SparseExperts, x: Tensor, mask: Tensor | None = None) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """One token after the other: outputs, auxiliary loss, and what each expert was asked for and turned away."""
    mask = torch.ones(x.shape[:2], dtype=torch.bool) if mask is None else mask
    tokens, count, top = int(mask.sum()), module.count, module.top
    limit = math.inf
    if module.capacity is not None and module.training:
        limit = math.ceil(module.capacity * tokens * top / count)
    out = [[torch.zeros(DIM, dtype=x.dtype) for _ in row] for row in x]
    asked, dropped = torch.zeros(count), torch.zeros(count)
    probability = torch.zeros(count, dtype=x.dtype)
    for b, row in enumerate(x):
        for n, token in enumerate(row):
            if not mask[b, n]:
                continue
            p = (module.router.weight @ token).softmax(0)
            probability = probability + p / tokens
            best = p.argsort(descending=True)[:top].tolist()
            total = sum(p[e] for e in best) if top > 1 else 1.0
            for e in best:
                asked[e] += 1
                if asked[e] > limit:
                    dropped[e] += 1
                else:
                    out[b][n] = out[b][n] + p[e] / total * module.experts[e](token)
    balance = module.balance * count * (asked.double() / (tokens * top) * probability).sum()
    return torch.stack([torch.stack(row) for row in out]), balance, asked, dropped


@pytest.mark.parametrize("masked", [False, True])
@pytest.mark.parametrize(("top", "capacity"), [(1, None), (1, 0.5), (2, None), (2, 1.0), (2, 0.1), (5, 0.7)])
def test_equals_a_loop_over_tokens_and_experts(top: int, capacity: float | None, masked: bool) -> None:
    module = experts(top=top, capacity=capacity).train()
    mask = padding() if masked else None
    x = inputs().requires_grad_()
    direction = torch.randn(x.shape, dtype=torch.float64)
    expected, balance, asked, dropped = slow(module, x, mask)
    out = module(x, mask)
    assert_equal(out, expected)
    assert_equal(module.auxiliary_loss(), balance)
    leaves = [x, *module.parameters()]
    ours, theirs = (
        torch.autograd.grad([one, loss], leaves, [direction, torch.ones_like(loss)], allow_unused=True)
        for one, loss in ((out, module.auxiliary_loss()), (expected, balance))
    )
    for gradient, other, leaf in zip(ours, theirs, leaves, strict=True):
        assert gradient is not None, "or DDP would wait for it"
        assert_equal(gradient, torch.zeros_like(leaf) if other is None else other)
    load = module.take_load(training=True)
    assert load is not None
    assert load.asked.tolist() == asked.tolist()
    assert load.dropped.tolist() == dropped.tolist()
    assert (load.dropped.sum() > 0) == (capacity is not None)
    assert load.probability.sum().item() == pytest.approx(1)


def test_places_by_hand() -> None:
    """⌈capacity · tokens · top / count⌉, and 1.1 × 10 is 11, whatever floating point makes of it."""
    module = experts(count=10, top=1, capacity=1.1).train()
    assert module.places(100) == 11
    assert module.places(101) == 12
    assert module.places(1) == 1
    assert module.eval().places(100) == 100
    assert experts(capacity=None).train().places(100) == 100


def test_balance_of_an_even_load_is_its_weight() -> None:
    """Every expert gets as many tokens and the same probability: count · Σ f P = 1; all to one: count."""
    module = SparseExperts(4, 8, count=4, top=1, balance=0.3).double()
    module.router.weight.data = 50 * torch.eye(4, dtype=torch.float64)
    module(torch.eye(4, dtype=torch.float64)[None])
    assert module.auxiliary_loss().item() == pytest.approx(0.3)
    module(torch.eye(4, dtype=torch.float64)[None, [1, 1, 1]])
    assert module.auxiliary_loss().item() == pytest.approx(0.3 * 4)


def test_one_expert_is_the_dense_block() -> None:
    """With the same weights, bit for bit, and gradients too."""
    torch.manual_seed(0)
    attention = build_attention("softmax", {}, dim=DIM, heads=2, seq_len=LENGTH, causal=False)
    dense = Block(DIM, attention, mlp_ratio=1.5).double()
    sparse = Block(DIM, attention, feed_forward=SparseExperts(DIM, HIDDEN, count=1, top=1, capacity=1.0)).double()
    own = {name.replace("mlp.", "mlp.experts.0."): tensor for name, tensor in dense.state_dict().items()}
    sparse.load_state_dict({**own, "mlp.router.weight": sparse.get_parameter("mlp.router.weight")})
    results = []
    for block in (dense, sparse):
        x = inputs().requires_grad_()
        out = block(x, padding())
        out = out.masked_fill(~padding()[..., None], 0)
        (gradient,) = torch.autograd.grad(out.square().sum(), x)
        results.append((out, gradient))
    assert torch.equal(results[0][0], results[1][0])
    assert_equal(results[1][1], results[0][1])


def test_padding_takes_no_place_and_enters_no_count() -> None:
    """Neither what stands there, nor that it is there; it comes out as 0."""
    module = experts(capacity=0.8).train()
    x, mask = inputs(), padding()
    out, loss = module(x, mask), module.auxiliary_loss()
    before = module.take_load(training=True)
    assert_equal(module(x.masked_fill(~mask[..., None], 100.0), mask), out)
    assert_equal(module.auxiliary_loss(), loss)
    after = module.take_load(training=True)
    assert before is not None
    assert after is not None
    assert before.asked.tolist() == after.asked.tolist()
    assert before.asked.sum() == OPTIONS["top"] * mask.sum()
    assert_equal(after.probability, before.probability)
    assert not out[~mask].any()
    alone = experts(capacity=0.8).train()(x[mask][None])
    assert_equal(out[mask], alone[0])


def test_all_padding() -> None:
    module = experts(capacity=1.0).train()
    x = inputs()
    assert not module(x, torch.zeros(x.shape[:2], dtype=torch.bool)).any()
    assert module.auxiliary_loss().item() == 0
    assert module.take_load(training=True) is None


def test_places_go_to_the_first_tokens() -> None:
    """So that none depends on those behind it, in training either; all want the same expert here."""
    module = experts(top=1, capacity=1.0).train()
    x = inputs(10)[:1, :1].expand(1, 10, DIM)
    served = module(x)[0].abs().sum(-1) > 0
    assert served.tolist() == [True] * 2 + [False] * 8
    load = module.take_load(training=True)
    assert load is not None
    assert (load.asked.max(), load.dropped.max()) == (10, 8)


def test_evaluation_turns_nobody_away_and_is_counted_by_itself() -> None:
    module = experts(capacity=0.1)
    x = inputs()
    whole = module.eval()(x)
    assert_equal(whole, experts(capacity=None).train()(x))
    assert_equal(torch.stack([module(one[None])[0] for one in x]), whole)
    module.train()(x)
    counted = [module.take_load(training) for training in (True, False)]
    assert counted[0] is not None
    assert counted[1] is not None
    assert counted[0].dropped.sum() > 0 == counted[1].dropped.sum()
    assert counted[1].asked.sum() == 2 * counted[0].asked.sum() == 4 * x.shape[0] * LENGTH
    assert module.take_load(True) is None
    assert module.take_load(False) is None


def test_loss_needs_a_forward_pass() -> None:
    with pytest.raises(RuntimeError, match="there was none yet"):
        experts().auxiliary_loss()


def test_can_be_copied_after_a_forward_pass() -> None:
    module = experts()
    module(inputs())
    twin = copy.deepcopy(module)
    assert twin.take_load(training=True) is None
    assert_equal(twin(inputs()), module(inputs()))


def test_router_stays_in_float32_under_autocast() -> None:
    module = experts().float()
    x = inputs().float()
    with torch.autocast("cpu", torch.bfloat16):
        half, probabilities = module(x), module.probabilities(x[0])
    assert torch.equal(probabilities, (x[0] @ module.router.weight.T).softmax(-1))
    assert half.dtype == torch.bfloat16
    torch.testing.assert_close(half.float(), module(x), rtol=0.05, atol=0.02)


def model(name: str, capacity: float | None, **options: Any) -> CausalDecoder:
    torch.manual_seed(0)
    sizes: dict[str, Any] = {"dim": DIM, "heads": 2, "seq_len": LENGTH, "causal": True}
    mechanisms = [build_attention(name, {}, **sizes) for _ in range(2)]
    mixture = {**OPTIONS, "capacity": capacity}
    return CausalDecoder(mechanisms, dim=DIM, seq_len=LENGTH, vocabulary=11, experts=mixture, **options).double()


@pytest.mark.parametrize("name", ["softmax", "symmetric", "rpc"])
@pytest.mark.parametrize("capacity", [None, 0.2])
def test_decoding_equals_all_at_once(name: str, capacity: float | None) -> None:
    """Whatever the capacity, which does not bind then, and however many tokens come at a time."""
    decoder = model(name, capacity).eval()
    tokens = torch.randint(11, (2, LENGTH))
    whole = decoder(tokens)
    for chunks in ([1] * LENGTH, [4, 1, 2]) if hasattr(decoder.blocks[0].attn, "decode") else []:
        state, logits = None, []
        for chunk in tokens.split(chunks, 1):
            out, state = decoder.decode(chunk, state)
            logits.append(out)
        assert_equal(torch.cat(logits, 1), whole)


@pytest.mark.parametrize("training", [False, True])
def test_decoder_does_not_see_what_follows(training: bool) -> None:
    """In training neither, where a later token might have taken a place; of one text, since they share the places."""
    decoder = model("softmax", 0.5).train(training)
    tokens = torch.randint(11, (1, LENGTH))
    changed = torch.cat((tokens[:, :4], (tokens[:, 4:] + 1) % 11), 1)
    before, after = decoder(tokens), decoder(changed)
    assert_equal(after[:, :4], before[:, :4])
    assert ((after[:, 4:] - before[:, 4:]).abs().amax((0, 2)) > 1e-6).all()


def test_encoder_does_not_see_padding() -> None:
    torch.manual_seed(0)
    mechanisms = [build_attention("softmax", {}, dim=DIM, heads=2, seq_len=LENGTH, causal=False)]
    sizes: dict[str, Any] = {"dim": DIM, "seq_len": LENGTH, "classes": 4, "experts": {**OPTIONS, "capacity": 0.5}}
    encoder = SequenceEncoder(mechanisms, nn.Embedding(11, DIM), **sizes).double().train()
    tokens, mask = torch.randint(11, (3, LENGTH)), padding()
    assert_equal(encoder((tokens + ~mask) % 11, mask), encoder(tokens, mask))


def test_checkpointing_changes_no_number_and_counts_once() -> None:
    results = []
    for enabled in (False, True):
        language = build_language_model(
            Decoder.model_validate({"dim": 8, "depth": 2, "heads": 2, "dropout": 0.2, "experts": {"count": 4}}),
            Attention.model_validate({"name": "softmax"}),
            seq_len=LENGTH,
            vocabulary=11,
        ).double()
        torch.manual_seed(0)
        for parameter in language.parameters():
            nn.init.normal_(parameter, std=0.3)
        language.train().set_grad_checkpointing(enabled)
        logits = language(torch.randint(11, (3, LENGTH)))
        auxiliary = auxiliary_loss(language)
        (logits.square().sum() + auxiliary).backward()
        loads = [module.take_load(training=True) for module in language.experts()]
        counted = [load.asked for load in loads if load is not None]
        assert [one.sum().item() for one in counted] == [2 * 3 * LENGTH] * 2
        results.append([auxiliary.detach(), *counted, *(parameter.grad for parameter in language.parameters())])
    assert all(torch.equal(*pair) for pair in zip(*results, strict=True))


def test_loss_of_all_layers_joins_that_of_the_mechanisms() -> None:
    """Sums over the layers, of experts and of Primal-Attention."""
    recipe = {"dim": 8, "depth": 3, "heads": 2, "experts": {"count": 4, "balance": 0.5}}
    facts: dict[str, Any] = {"seq_len": LENGTH, "classes": 2, "channels": 3, "vocabulary": 0, "pairs": False}
    attention = Attention.model_validate({"name": "softmax", "layers": {-1: "primal"}})
    classifier = build_sequence_classifier(
        Encoder.model_validate(recipe), attention, **facts, mean=[0.0] * 3, std=[1.0] * 3
    )
    classifier.backbone(torch.randn(2, LENGTH, 3))
    layers: list[Any] = [*classifier.experts(), classifier.mechanisms()[-1]]
    expected = sum(layer.auxiliary_loss() for layer in layers)
    torch.testing.assert_close(auxiliary_loss(classifier), expected)
    assert all(layer.auxiliary_loss() > 0 for layer in layers)


def test_operations_are_those_of_the_experts_that_are_asked() -> None:
    """Of an MLP ``top`` times as wide, and the router's."""
    attention = Attention.model_validate({"name": "softmax"})
    counts = []
    for options in ({"mlp_ratio": 1.0, "experts": {"count": 6, "top": 3}}, {"mlp_ratio": 3.0}):
        sizes = Decoder.model_validate({"dim": 8, "depth": 2, "heads": 2, **options})

        def build(sizes: Decoder = sizes) -> nn.Module:
            return build_language_model(sizes, attention, seq_len=LENGTH, vocabulary=11)

        counts.append(model_flops_of(build, lambda: torch.zeros(1, LENGTH, dtype=torch.long)).matrix_products)
    assert counts[0] - counts[1] == 2 * 2 * LENGTH * 8 * 6
