"""Decision Transformer: what each action may depend on, the equations token by token, sizes and bounds."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from reference_vectors import assert_equal
from torch import Tensor, nn

from kattn_cli.attention import attention_classes
from kattn_cli.data.trajectories import Windows
from kattn_cli.errors import RecipeError
from kattn_cli.models import auxiliary_loss
from kattn_cli.models.decision_transformer import DecisionTransformer, build_decision_transformer
from kattn_cli.models.layers import trajectory_layers
from kattn_cli.recipe.model import DecisionTransformer as Sizes
from kattn_cli.recipe.schema import Attention

S, A, K, LONGEST = 3, 2, 5, 12
SIZES = Sizes(dim=24, depth=2, heads=3, mlp_ratio=2.0)
LOW, HIGH = [-2.0, -0.5], [1.0, 0.5]
FACTS: dict[str, Any] = {
    "states": S,
    "actions": A,
    "context": K,
    "longest": LONGEST,
    "mean": [0.5, -1.0, 2.0],
    "std": [1.0, 2.0, 0.5],
    "return_scale": 10.0,
    "action_low": LOW,
    "action_high": HIGH,
}
CAUSAL: list[tuple[str, dict[str, Any]]] = [
    *(
        (name, {})
        for name, cls in attention_classes().items()
        if cls.supports_causal and name not in ("primal", "longformer")
    ),
    ("longformer", {"window": 8}),
    ("primal", {"s": 2, "projection": "data-independent"}),
    ("primal", {"s": 2, "projection": "data-independent", "convention": "reference", "square": "sample"}),
    ("tssa", {"convention": "reference"}),
]
each_causal = pytest.mark.parametrize(("name", "options"), CAUSAL, ids=str)


def built(name: str = "softmax", options: dict[str, Any] | None = None, sizes: Sizes = SIZES) -> DecisionTransformer:
    """In float64 and ``eval`` mode, every parameter away from where it starts."""
    torch.manual_seed(0)
    model = build_decision_transformer(sizes, Attention(name=name, **options or {}), **FACTS).double().eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.05 * torch.randn_like(parameter))
    return model


def windows(*lengths: int, first: int = 0) -> Windows:
    """Windows of so many steps, from step ``first`` of their episodes; not a number at the padding."""
    torch.manual_seed(1)
    count = len(lengths)
    mask = torch.arange(K) < torch.tensor(lengths)[:, None]
    random = [torch.randn(count, K, width, dtype=torch.float64) for width in (1, S, A)]
    returns, states, actions = (one.masked_fill(~mask[..., None], torch.nan) for one in random)
    return Windows(returns, states, actions, torch.arange(first, first + K).expand(count, K), mask)


@each_causal
def test_an_action_depends_on_its_past_alone(name: str, options: dict[str, Any]) -> None:
    """Not on its own action nor on what follows; on its own return and state."""
    model, seen = built(name, options), windows(K, K)
    said = model(seen)
    for t in range(K):
        later = torch.arange(K) > t
        changed = seen._replace(
            returns=torch.where(later[:, None], seen.returns + 50, seen.returns),
            states=torch.where(later[:, None], seen.states + 50, seen.states),
            actions=torch.where((torch.arange(K) >= t)[:, None], seen.actions + 50, seen.actions),
            timesteps=torch.where(later, (seen.timesteps + 3) % LONGEST, seen.timesteps),
        )
        torch.testing.assert_close(model(changed)[:, : t + 1], said[:, : t + 1], rtol=0, atol=1e-12)
        if t < K - 1:
            assert not torch.allclose(model(changed)[:, t + 1 :], said[:, t + 1 :])
    for column in ("returns", "states"):
        moved = getattr(seen, column).clone()
        moved[:, 2] += 1
        assert not torch.allclose(model(seen._replace(**{column: moved}))[:, 2], said[:, 2])


@each_causal
def test_padding_is_not_seen(name: str, options: dict[str, Any]) -> None:
    """Nor by the auxiliary terms, which are those of each window by itself."""
    model, batch = built(name, options), windows(K, 3, 1)
    said, term = model(batch), auxiliary_loss(model)
    terms = []
    for row, length in enumerate((K, 3, 1)):
        alone = Windows(*(one[row : row + 1, :length] for one in batch))
        assert_equal(said[row, :length], model(alone)[0])
        terms.append(auxiliary_loss(model))
    if options.get("convention") != "reference":
        torch.testing.assert_close(term, torch.stack(terms).mean(), rtol=1e-10, atol=1e-12)
    assert said[batch.mask].isfinite().all()


def by_hand(model: DecisionTransformer, seen: Windows) -> Tensor:
    """One window, token by token, with softmax attention written out."""
    body: Any = model.backbone
    tokens = []
    for t in range(K):
        time = body.time.weight[seen.timesteps[0, t]]
        scaled_return = seen.returns[0, t] / 10.0
        state = (seen.states[0, t] - torch.tensor(FACTS["mean"])) / torch.tensor(FACTS["std"])
        tokens += [
            body.embed_norm(embed(value) + time)
            for embed, value in zip(body.embed, (scaled_return, state, seen.actions[0, t]), strict=True)
        ]
    for block in body.blocks:
        heads = []
        for token in tokens:
            q, k, v = block.attn.qkv(block.norm1(token)).unflatten(0, (3, 3, 8)).unbind(0)
            heads.append((q, k, v))
        for place, token in enumerate(list(tokens)):
            q = heads[place][0]
            scores = torch.stack([(q * k).sum(-1) / 8**0.5 for _, k, _ in heads[: place + 1]])
            weights = scores.softmax(0)
            mixed = sum(weight[:, None] * v for weight, (_, _, v) in zip(weights, heads[: place + 1], strict=True))
            tokens[place] = token + block.attn.proj(mixed.flatten())
        tokens = [token + block.mlp(block.norm2(token)) for token in tokens]
    low, high = torch.tensor(LOW), torch.tensor(HIGH)
    said = [body.head(body.norm(tokens[3 * t + 1])).tanh() for t in range(K)]
    return torch.stack([low + (one + 1) / 2 * (high - low) for one in said])


def test_equals_the_equations_token_by_token() -> None:
    model, seen = built(), windows(K, first=4)
    assert_equal(model(seen)[0], by_hand(model, seen))


def test_actions_lie_within_their_bounds() -> None:
    model = built()
    nn.init.constant_(model.backbone.head.bias, 50.0)
    assert_equal(model(windows(K)), torch.tensor(HIGH).expand(1, K, A).double())
    nn.init.constant_(model.backbone.head.bias, -50.0)
    assert_equal(model(windows(K)), torch.tensor(LOW).expand(1, K, A).double())


def test_steps_beyond_the_longest_share_the_last_code() -> None:
    model, seen = built(), windows(K)
    last = seen._replace(timesteps=torch.full((1, K), LONGEST - 1))
    assert torch.equal(model(seen._replace(timesteps=torch.full((1, K), LONGEST + 700))), model(last))
    assert not torch.allclose(model(seen._replace(timesteps=torch.full((1, K), LONGEST - 2))), model(last))


def test_parameters_of_the_paper_by_hand() -> None:
    """3 layers, width 256, 4 heads, context 20, of Hopper's 11 states and 3 actions."""
    facts = {**FACTS, "states": 11, "actions": 3, "context": 20, "longest": 1000}
    facts |= {"mean": [0.0] * 11, "std": [1.0] * 11, "action_low": [-1.0] * 3, "action_high": [1.0] * 3}
    dim, hidden = 256, 1024
    block = 4 * dim * (dim + 1) + 2 * dim * hidden + hidden + dim + 4 * dim
    outside = dim * (2 + 12 + 4) + 1000 * dim + 2 * dim + 2 * dim + 3 * (dim + 1)
    softmax = build_decision_transformer(Sizes(), Attention(name="softmax"), **facts)
    assert sum(one.numel() for one in softmax.parameters()) == 3 * block + outside
    options: Any = {"name": "primal", "projection": "data-independent", "s": 32, "eta": 0.05}
    plus = build_decision_transformer(Sizes(), Attention(name="softmax", layers={-1: options}), **facts)
    values = dim * (dim + 1)
    primal = 2 * 4 * 64 * 32 + 4 * 32 + 64 * (64 + 1)
    assert sum(one.numel() for one in plus.parameters()) == 3 * block + outside - values + primal
    assert [type(one).__name__ for one in plus.mechanisms()] == ["SoftmaxAttention"] * 2 + ["PrimalAttention"]


def test_layers_are_causal_and_of_three_tokens_a_step() -> None:
    layers = trajectory_layers(SIZES, 20)
    assert (layers.seq_len, layers.causal, layers.depth, layers.dim, layers.heads) == (60, True, 2, 24, 3)


def test_a_mechanism_without_a_causal_form_is_refused() -> None:
    with pytest.raises(RecipeError, match="attention xca: has no causal form"):
        built("xca")


def test_the_normalisation_is_kept_with_the_weights() -> None:
    """So that data that change do not change a model."""
    state = built().state_dict()
    assert state["mean"].tolist() == FACTS["mean"]
    assert state["return_scale"].item() == 10.0


def test_checkpointing_changes_nothing() -> None:
    model, seen = built("primal", {"s": 2, "projection": "data-independent"}), windows(K, K)
    slopes = []
    for enabled in (False, True):
        model.zero_grad()
        model.set_grad_checkpointing(enabled)
        (model(seen).square().sum() + auxiliary_loss(model)).backward()
        slopes.append([one.grad.clone() for one in model.parameters() if one.grad is not None])
    for one, two in zip(*slopes, strict=True):
        assert_equal(one, two)
