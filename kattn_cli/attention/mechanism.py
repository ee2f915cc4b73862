"""What the mechanisms of this room share: sizes and projections."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor, nn

from kattn_cli.attention import flops
from kattn_cli.attention.heads import join_heads, split_projections


def refuse_longer(n: int, seq_len: int) -> None:
    """Refuse more tokens than there are positions, for mechanisms with a parameter for each.

    Raises:
        ValueError: if ``n`` tokens are more than the ``seq_len`` that a mechanism was built for.
    """
    if n > seq_len:
        raise ValueError(f"{n} tokens, and it was built for {seq_len}")


class AttentionMechanism(nn.Module):
    """``(B, N, C)`` to ``(B, N, C)`` in ``heads`` heads.

    Raises:
        ValueError: if ``heads`` does not divide ``dim``, or ``causal`` is asked of a mechanism without that form.
    """

    supports_causal: ClassVar[bool] = False

    def __init__(self, dim: int, heads: int, causal: bool = False) -> None:
        super().__init__()
        if dim % heads:
            raise ValueError(f"dim = {dim} is not a multiple of heads = {heads}")
        if causal and not self.supports_causal:
            raise ValueError("has no causal form")
        self.dim, self.heads, self.head_dim, self.causal = dim, heads, dim // heads, causal

    def require_causal(self) -> None:
        """Refuse to decode unless causal: what follows is not known yet.

        Raises:
            ValueError: if the module is not causal.
        """
        if not self.causal:
            raise ValueError("only a causal mechanism decodes")

    def require_deviation(self) -> None:
        """Refuse to standardise the entries of a token in a head, where there is one.

        Raises:
            ValueError: if heads are one wide.
        """
        if self.head_dim < 2:
            raise ValueError(f"standardise needs heads at least 2 wide, and dim = {self.dim} in {self.heads} are 1")


class QKVAttention(AttentionMechanism):
    """Queries, keys and values from one projection, an operator on them, heads joined, an output projection.

    Parameters are named and laid out as in timm's ``Attention``, so its weights load.
    """

    def __init__(self, dim: int, heads: int, *, causal: bool = False, qkv_bias: bool = True) -> None:
        super().__init__(dim, heads, causal)
        self.qkv = nn.Linear(dim, 3 * dim, bias=qkv_bias)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """Return the output for every token, ``(B, N, C)``.

        ``x``: ``(B, N, C)``; ``mask``: ``(B, N)``, True where there is a token, or None for no padding."""
        q, k, v = self.projected(x)
        return self.proj(join_heads(self.operate(q, k, v, mask)))

    def projected(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return queries, keys and values, ``(B, H, N, d)`` each."""
        q, k, v = split_projections(self.qkv(x), self.heads, 3)
        return q, k, v

    @abstractmethod
    def operate(self, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
        """Return the output of each head, ``(B, H, N, d)``, from queries, keys and values of that shape."""

    @abstractmethod
    def operator_flops(self, n: int) -> int:
        """Return the operations of :meth:`operate` for one sample of ``n`` tokens."""

    def flops(self, n: int) -> int:
        """Return the operations for one sample of ``n`` tokens."""
        projections = flops.linear(n, self.dim, 3 * self.dim, self.qkv.bias is not None)
        return projections + self.operator_flops(n) + flops.linear(n, self.dim, self.dim)
