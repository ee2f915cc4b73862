"""Decision Transformer: the next action from returns to go, states and actions so far, with any causal mechanism.

Source: Chen et al. 2021, "Decision Transformer: Reinforcement Learning via Sequence Modeling", §3 and Algorithm 1.
Our deviations from the authors' program: GELU in place of ReLU, linear maps of the blocks as PyTorch initialises them,
and padding behind a short window instead of before it. B: batch, K: steps of a window, S and A: widths of a state and
of an action.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from kattn_cli.models.blocks import NORM_EPS
from kattn_cli.models.layers import TOKENS_A_STEP, trajectory_layers
from kattn_cli.models.model import AttentionModel
from kattn_cli.models.sequence_model import Stack
from kattn_cli.recipe.model import DecisionTransformer as Sizes
from kattn_cli.recipe.schema import Attention


class TrajectoryWindows(Protocol):
    """Parts of episodes; see :class:`~kattn_cli.data.trajectories.Windows`."""

    @property
    def returns(self) -> Tensor:
        """Returns to go, ``(B, K, 1)``, as the environment counts them."""

    @property
    def states(self) -> Tensor:
        """``(B, K, S)``."""

    @property
    def actions(self) -> Tensor:
        """``(B, K, A)``."""

    @property
    def timesteps(self) -> Tensor:
        """Of the episode, ``(B, K)`` int64."""

    @property
    def mask(self) -> Tensor | None:
        """``(B, K)``, True where there is a step, or None for no padding, which stands at the end."""


class DecisionBackbone(Stack):
    """Return, state and action of each step as three tokens, causal blocks, and the action that each state calls for.

    Args:
        mechanisms: the attention of each block, causal and for ``3 · K`` tokens; also the depth.
        longest: steps of an episode that have a code of their own; all beyond share the last.
    """

    def __init__(
        self,
        mechanisms: Sequence[nn.Module],
        *,
        states: int,
        actions: int,
        longest: int,
        dim: int,
        mlp_ratio: float = 4.0,
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__(mechanisms, dim, mlp_ratio, dropout, drop_path)
        self.embed = nn.ModuleList(nn.Linear(width, dim) for width in (1, states, actions))
        self.time = nn.Embedding(longest, dim)
        self.embed_norm = nn.LayerNorm(dim, eps=NORM_EPS)
        self.head = nn.Linear(dim, actions)

    def forward(
        self, returns: Tensor, states: Tensor, actions: Tensor, timesteps: Tensor, mask: Tensor | None
    ) -> Tensor:
        """Return actions ``(B, K, A)`` in [-1, 1]; that of a step does not see the action taken at that step."""
        # Episodes in an environment may last longer than any in the data.
        time = self.time(timesteps.clamp(max=self.time.num_embeddings - 1))
        parts = zip(self.embed, (returns, states, actions), strict=True)
        tokens = torch.stack([embed(values) + time for embed, values in parts], 2)  # (B, K, 3, dim)
        x = self.embed_norm(tokens.flatten(1, 2))
        if mask is not None:
            mask = mask.repeat_interleave(TOKENS_A_STEP, 1)
            # Biases and the code of time make padding other than 0.
            x = x.masked_fill(~mask[..., None], 0)
        # From the state's token, the second of each three: behind its return, before its action.
        return self.head(self.run(x, mask)[:, 1::TOKENS_A_STEP]).tanh()


class DecisionTransformer(AttentionModel):
    """Windows of trajectories to actions ``(B, K, A)`` within their bounds.

    States are normalised and returns scaled as those of its data were, which is part of the model and its weights.

    Args:
        mean, std: of the states of the training data, ``(S,)``.
        return_scale: what returns are divided by.
        action_low, action_high: bounds of the actions, ``(A,)``.
    """

    backbone: DecisionBackbone
    mean: Tensor
    std: Tensor
    return_scale: Tensor
    action_low: Tensor
    action_high: Tensor

    def __init__(
        self,
        backbone: DecisionBackbone,
        *,
        mean: Sequence[float],
        std: Sequence[float],
        return_scale: float,
        action_low: Sequence[float],
        action_high: Sequence[float],
    ) -> None:
        super().__init__()
        self.backbone = backbone
        facts: dict[str, Any] = {"mean": mean, "std": std, "return_scale": return_scale}
        facts |= {"action_low": action_low, "action_high": action_high}
        for name, values in facts.items():
            # Kept in checkpoints: a policy must act on states scaled as they were in training.
            self.register_buffer(name, torch.as_tensor(values, dtype=torch.float32).detach().clone())

    def forward(self, windows: TrajectoryWindows) -> Tensor:
        states = (windows.states - self.mean) / self.std
        returns = windows.returns / self.return_scale
        predicted = self.backbone(returns, states, windows.actions, windows.timesteps, windows.mask)
        return self.action_low + (predicted + 1) / 2 * (self.action_high - self.action_low)


def build_decision_transformer(
    model: Sizes,
    attention: Attention,
    *,
    states: int,
    actions: int,
    context: int,
    longest: int,
    mean: Sequence[float],
    std: Sequence[float],
    return_scale: float,
    action_low: Sequence[float],
    action_high: Sequence[float],
) -> DecisionTransformer:
    """Return the model of these sizes, with the mechanisms that ``attention`` names, layer by layer.

    Args:
        states, actions: their widths.
        context: steps that it sees at once.
        longest: steps of the longest episode.

    Raises:
        RecipeError: if a mechanism refuses, for example because it has no causal form.
    """
    layers = trajectory_layers(model, context)
    mechanisms = [layers.build(one) for one in attention.per_layer(layers.depth)]
    sizes: dict[str, Any] = model.model_dump(exclude={"name", "depth", "heads"})
    backbone = DecisionBackbone(mechanisms, states=states, actions=actions, longest=longest, **sizes)
    return DecisionTransformer(
        backbone,
        mean=mean,
        std=std,
        return_scale=return_scale,
        action_low=action_low,
        action_high=action_high,
    )
