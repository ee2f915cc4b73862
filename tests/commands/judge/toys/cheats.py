"""Mechanisms that are not what they say."""

import torch
from torch import nn
from torch.nn.functional import scaled_dot_product_attention


class Renamed(nn.Module):
    """Softmax attention under another name, its projections in another order and apart."""

    def __init__(self, dim, heads, *, seq_len, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.mix, self.content, self.probe, self.address = (nn.Linear(dim, dim) for _ in range(4))

    def forward(self, x):
        q, k, v = (
            layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
            for layer in (self.probe, self.address, self.content)
        )
        return self.mix(self.attend(q, k, v).transpose(1, 2).flatten(2))

    def attend(self, q, k, v):
        return scaled_dot_product_attention(q, k, v, is_causal=self.causal)


class SeesTheFuture(Renamed):
    """Its causal form adds the mean over all tokens."""

    supports_causal = True

    def forward(self, x):
        return super().forward(x) + x.mean(1, keepdim=True)


class SeesTheFutureInTraining(Renamed):
    """Its causal form takes a norm over all tokens, in training alone."""

    supports_causal = True

    def forward(self, x):
        out = super().forward(x)
        return out / (1 + out.std()) if self.training else out


class Rounds(Renamed):
    """It rounds its inputs, so that no gradient comes through."""

    def forward(self, x):
        return super().forward((8 * x).round() / 8)


class RoundsScores(Renamed):
    """It rounds queries and keys, so that a gradient comes through the values alone."""

    def attend(self, q, k, v):
        return super().attend((8 * q).round() / 8, (8 * k).round() / 8, v)


class Detaches(Renamed):
    """It detaches queries and keys, so that its gradient is of the values alone."""

    def attend(self, q, k, v):
        return super().attend(q.detach(), k.detach(), v)


class PassesThrough(Renamed):
    """It rounds its inputs, and says that it did not."""

    def forward(self, x):
        return super().forward(x + ((4 * x).round() / 4 - x).detach())


class SeesTheBatch(Renamed):
    """It takes the mean over the batch off."""

    def forward(self, x):
        return super().forward(x - x.mean((0, 1)))


class Draws(Renamed):
    """It adds noise, asked or not."""

    def forward(self, x):
        return super().forward(x) + 0.01 * torch.randn_like(x)


class Remembers(Renamed):
    """It keeps a running mean, in eval mode too."""

    past: torch.Tensor

    def __init__(self, dim, heads, *, seq_len, causal=False):
        super().__init__(dim, heads, seq_len=seq_len, causal=causal)
        self.register_buffer("past", torch.zeros(dim))

    def forward(self, x):
        self.past = 0.9 * self.past + 0.1 * x.detach().mean((0, 1))
        return super().forward(x - self.past)


class SeesPadding(Renamed):
    """It takes a mask, and leaves it."""

    def forward(self, x, mask=None):
        return super().forward(x)


class Overflows(Renamed):
    """It takes exponentials as they are."""

    def attend(self, q, k, v):
        weights = (q @ k.mT).exp()
        return weights / weights.sum(-1, keepdim=True) @ v


class BeginsAtZero(Rounds):
    """Its last projection begins at 0, so that outputs say nothing until it is trained."""

    def __init__(self, dim, heads, *, seq_len, causal=False):
        super().__init__(dim, heads, seq_len=seq_len, causal=causal)
        nn.init.zeros_(self.mix.weight)
        nn.init.zeros_(self.mix.bias)


class KnowsPlaces(Renamed):
    """It multiplies every place by a number of its own."""

    def __init__(self, dim, heads, *, seq_len, causal=False):
        super().__init__(dim, heads, seq_len=seq_len, causal=causal)
        self.places = nn.Parameter(torch.linspace(1, 2, seq_len)[:, None])

    def forward(self, x):
        return super().forward(self.places[: x.shape[1]] * x)


class HasTheMatrix(Renamed):
    """Its attention matrix is softmax attention's, its outputs are not."""

    def forward(self, x):
        return super().forward(x).tanh()

    def attention_matrix(self, x):
        q, k = (layer(x).unflatten(-1, (self.heads, -1)).transpose(1, 2) for layer in (self.probe, self.address))
        return (q @ k.mT / q.shape[-1] ** 0.5).softmax(-1)


class Shortens(Renamed):
    """It loses a token."""

    def forward(self, x):
        return super().forward(x)[:, 1:]


class Breaks(Renamed):
    """It multiplies what cannot be multiplied."""

    def forward(self, x):
        return x @ x


class OnlySingle(Renamed):
    """It knows float32 alone."""

    def forward(self, x):
        return super().forward(
            x + torch.zeros(1, dtype=torch.float32).expand_as(x).to(x.dtype) @ torch.zeros(x.shape[-1], x.shape[-1])
        )
