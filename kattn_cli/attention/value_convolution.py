"""A depthwise convolution of the values, which Nyströmformer and YOSO may add to what they attend to."""

from __future__ import annotations

from torch import Tensor, nn

from kattn_cli.kernels.masks import without_padding


class ValueConvolution(nn.Conv2d):
    """``(B, H, N, d)`` along the N tokens, one kernel of ``size`` taps in each head, padding as zeros.

    Raises:
        ValueError: if ``size`` is even.
    """

    def __init__(self, heads: int, size: int) -> None:
        if size % 2 == 0:
            raise ValueError(f"conv_kernel_size = {size} is even, and has no middle")
        super().__init__(heads, heads, (size, 1), padding=(size // 2, 0), groups=heads, bias=False)

    def forward(self, v: Tensor, mask: Tensor | None = None) -> Tensor:
        v = without_padding(v, mask)
        return super().forward(v) if v.shape[-2] else v

    def flops(self, n: int, dim: int) -> int:
        """Return the operations for ``n`` tokens of width ``dim``, adding the result to another included."""
        return n * dim * (2 * self.kernel_size[0] + 1)
