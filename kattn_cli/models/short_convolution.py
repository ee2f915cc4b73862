"""A short convolution along the tokens, which lets each know those just before it, whatever attends to them later.

Without it a model must first learn, by attention alone, which token follows which; a second layer can then look things
up. With it one layer can, so that a task of recall asks for the look-up alone (Arora et al. 2023, "Zoology", §4;
Poli et al. 2023, "Hyena Hierarchy").
"""

from __future__ import annotations

from torch import Tensor, nn
from torch.nn.functional import pad


class ShortConvolution(nn.Conv1d):
    """``(B, N, dim)`` to the same: of each channel, a weighted sum of a token and the ``width - 1`` before it."""

    def __init__(self, dim: int, width: int) -> None:
        super().__init__(dim, dim, width, groups=dim)

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(pad(x.mT, (self.kernel_size[0] - 1, 0))).mT
