"""The README's own mechanism."""

from torch import nn


class MeanAttention(nn.Module):
    """Every token receives the mean token. (B, N, C) -> (B, N, C)."""

    def __init__(self, dim, heads, *, seq_len, causal=False, gain=1.0):
        super().__init__()
        self.gain = gain
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.gain * self.proj(x.mean(1, keepdim=True).expand_as(x))
