"""Decoding with keys and values kept: what softmax attention must remember grows with every token."""

from __future__ import annotations

import torch
from torch import Tensor

KeyValueCache = tuple[Tensor, Tensor]
"""Keys and values so far, ``(B, H, N, d)`` each."""


class _Room:
    """Keys and values ``(B, H, capacity, d)``, of which the first ``filled`` are written."""

    def __init__(self, cache: KeyValueCache, capacity: int) -> None:
        self.tensors = [z.new_empty(*z.shape[:2], capacity, z.shape[-1]) for z in cache]
        self.filled = 0
        self.write(*cache)

    def write(self, k: Tensor, v: Tensor) -> None:
        after = self.filled + k.shape[-2]
        for room, z in zip(self.tensors, (k, v), strict=True):
            room[:, :, self.filled : after] = z
        self.filled = after

    def takes(self, k: Tensor, behind: int) -> bool:
        """Return whether ``k`` fits behind the first ``behind`` tokens without changing another cache."""
        held = self.tensors[0]
        fits = self.filled == behind and behind + k.shape[-2] <= held.shape[-2] and held.dtype == k.dtype
        # Outside inference mode torch refuses to write into a tensor that was made inside.
        return fits and (torch.is_inference_mode_enabled() or not held.is_inference())


class _Growing(tuple[Tensor, Tensor]):
    """A cache whose two tensors are the first part of a ``room``."""

    room: _Room

    @classmethod
    def of(cls, room: _Room) -> _Growing:
        cache = cls(z[:, :, : room.filled] for z in room.tensors)
        cache.room = room
        return cache


def extend(cache: KeyValueCache | None, k: Tensor, v: Tensor) -> KeyValueCache:
    """Return the cache with the next tokens' keys and values appended; ``cache`` itself stays as it is.

    Without gradients, a cache that this function began has room for as many tokens again when it grows, so that a
    token is written once and not copied with every one that follows. Where one cache is extended twice, as by a search
    over several continuations, the second has a room of its own.
    """
    if torch.is_grad_enabled() and k.requires_grad:
        return (k, v) if cache is None else _joined(cache, k, v)
    if cache is None:
        return _Growing.of(_Room((k, v), k.shape[-2]))
    if not isinstance(cache, _Growing):
        return _joined(cache, k, v)
    behind = cache[0].shape[-2]
    if cache.room.takes(k, behind):
        cache.room.write(k, v)
        return _Growing.of(cache.room)
    return _Growing.of(_Room(_joined(cache, k, v), 2 * (behind + k.shape[-2])))


def _joined(cache: KeyValueCache, k: Tensor, v: Tensor) -> KeyValueCache:
    return torch.cat((cache[0], k), -2), torch.cat((cache[1], v), -2)
