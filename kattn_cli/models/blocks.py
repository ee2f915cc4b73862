"""Transformer blocks for any mechanism: pre-norm, with any feed-forward, and XCiT's class-attention block.

Parameters are named as in timm's vision transformer. Shapes: ``(B, N, C)`` everywhere.
"""

from __future__ import annotations

from typing import Any, Literal

import torch
import torch.nn.functional as F
from timm.layers import DropPath, LayerScale, Mlp
from torch import Tensor, nn

FeedForward = Literal["mlp", "ista"]
NORM_EPS = 1e-6


class Ista(nn.Module):
    """A step of ISTA towards a sparse, non-negative code of x: ``relu(x + step·Dᵀ(x − D x) − step·λ)``.

    Source: CRATE (Yu et al. 2023, "White-Box Transformers via Sparse Rate Reduction", §2.4). The dictionary D is
    learned, ``(dim, dim)``; step and λ are 0.1 there.
    """

    def __init__(self, dim: int, step: float = 0.1, lambda_: float = 0.1) -> None:
        super().__init__()
        self.step, self.lambda_ = step, lambda_
        self.dictionary = nn.Parameter(torch.empty(dim, dim))
        nn.init.kaiming_uniform_(self.dictionary)

    def forward(self, x: Tensor) -> Tensor:
        residual = x - F.linear(x, self.dictionary)
        return F.relu(x + self.step * F.linear(residual, self.dictionary.mT) - self.step * self.lambda_)


class Block(nn.Module):
    """``x + γ₁·attn(norm(x))``, then ``x + γ₂·mlp(norm(x))``; with ISTA ``ista(norm(x))``, without x and γ₂.

    Args:
        attn: the mechanism, ``attn(x)`` or ``attn(x, mask)``.
        feed_forward: a module in the MLP's place, if not one of those that have a name; one that ``takes_mask`` is
            given the mask, too.
        mlp_ratio: hidden width of the MLP over ``dim``; ISTA has none.
        layer_scale: where LayerScale's γ start, or None for no LayerScale.
        norm_eps: ε of both layer norms.
        dropout: probability that an entry of what a branch adds is set to 0.
        drop_path: probability that a sample skips a branch (stochastic depth).
    """

    def __init__(
        self,
        dim: int,
        attn: nn.Module,
        *,
        feed_forward: FeedForward | nn.Module = "mlp",
        mlp_ratio: float = 4.0,
        layer_scale: float | None = None,
        norm_eps: float = NORM_EPS,
        dropout: float = 0.0,
        drop_path: float = 0.0,
    ) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=norm_eps)
        self.attn = attn
        self.ls1 = _layer_scale(dim, layer_scale)
        self.dropout = nn.Dropout(dropout)
        self.drop_path1 = DropPath(drop_path)
        self.norm2 = nn.LayerNorm(dim, eps=norm_eps)
        self.residual = feed_forward != "ista"
        if isinstance(feed_forward, str):
            feed_forward = Mlp(dim, int(dim * mlp_ratio)) if self.residual else Ista(dim)
        self.mlp = feed_forward
        self.ls2 = _layer_scale(dim, layer_scale if self.residual else None)
        self.drop_path2 = DropPath(drop_path)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the block's output ``(B, N, C)``.

        ``mask``: ``(B, N)``, True where there is a token, or None for no padding.
        """
        z = self.norm1(x)
        return self._feed_forward(x, self.attn(z) if mask is None else self.attn(z, mask), mask)

    def decode(self, x: Tensor, state: Any = None) -> tuple[Tensor, Any]:
        """Return the outputs of the next tokens ``(B, n, C)``, and the state to give back with those that follow.

        Raises:
            AttributeError: if the mechanism cannot decode.
        """
        attn: Any = self.attn
        mixed, state = attn.decode(self.norm1(x), state)
        return self._feed_forward(x, mixed), state

    def _feed_forward(self, x: Tensor, mixed: Tensor, mask: Tensor | None = None) -> Tensor:
        x = x + self.drop_path1(self.ls1(self.dropout(mixed)))
        masked = mask is not None and getattr(self.mlp, "takes_mask", False)
        z = self.norm2(x)
        fed = self.mlp(z, mask) if masked else self.mlp(z)
        # ISTA's step contains its own x, so nothing is added to it.
        return x + self.drop_path2(self.ls2(self.dropout(fed))) if self.residual else fed


class ClassBlock(nn.Module):
    """Only the first token, CLS, attends to all tokens and is fed forward (CaiT's class attention, as in XCiT).

    As in the authors' program the other tokens pass through both branches: x becomes ``2·norm₂(x + γ₁·norm₁(x))``.

    Args:
        attn: attention that changes the first token and passes the others through.
        tokens_norm: whether norm₂ goes over all tokens, or over CLS alone, so that the others become
            ``2·(x + γ₁·norm₁(x))``; named as in XCiT.
    """

    def __init__(
        self, dim: int, attn: nn.Module, *, mlp_ratio: float = 4.0, layer_scale: float = 1.0, tokens_norm: bool = True
    ) -> None:
        super().__init__()
        self.tokens_norm = tokens_norm
        self.norm1 = nn.LayerNorm(dim, eps=NORM_EPS)
        self.attn = attn
        self.ls1 = LayerScale(dim, layer_scale)
        self.norm2 = nn.LayerNorm(dim, eps=NORM_EPS)
        self.mlp = Mlp(dim, int(dim * mlp_ratio))
        self.ls2 = LayerScale(dim, layer_scale)

    def forward(self, x: Tensor) -> Tensor:
        x = x + self.ls1(self.attn(self.norm1(x)))
        if self.tokens_norm:
            x = self.norm2(x)
        cls, others = x[:, :1], x[:, 1:]
        if not self.tokens_norm:
            cls = self.norm2(cls)
        return torch.cat((cls + self.ls2(self.mlp(cls)), 2 * others), 1)


def _layer_scale(dim: int, start: float | None) -> nn.Module:
    return nn.Identity() if start is None else LayerScale(dim, start)
