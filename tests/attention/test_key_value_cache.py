"""The cache of keys and values: what it holds, what it copies, and that nobody's cache changes."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kattn_cli.attention.key_value_cache import KeyValueCache, extend
from kattn_cli.attention.options import build_attention


def draw(n: int) -> tuple[Tensor, Tensor]:
    return torch.randn(2, 3, n, 4), torch.randn(2, 3, n, 4)


def grown(pieces: list[tuple[Tensor, Tensor]]) -> list[KeyValueCache]:
    caches: list[KeyValueCache] = []
    for k, v in pieces:
        caches.append(extend(caches[-1] if caches else None, k, v))
    return caches


@pytest.mark.parametrize("needs_grad", [False, True])
def test_every_cache_holds_its_tokens(needs_grad: bool) -> None:
    pieces = [draw(n) for n in (3, 1, 1, 5, 1, 1, 1)]
    for k, _ in pieces:
        k.requires_grad_(needs_grad)
    for count, cache in enumerate(grown(pieces), 1):
        for held, parts in zip(cache, zip(*pieces[:count], strict=True), strict=True):
            assert torch.equal(held, torch.cat(parts, -2))


def test_tokens_are_written_once_while_there_is_room() -> None:
    """5 tokens, then a room for 12: the sixth is copied there with the five, the next six are not copied again."""
    places = [cache[0].data_ptr() for cache in grown([draw(5), *(draw(1) for _ in range(8))])]
    assert [places.index(place) for place in places] == [0, 1, 1, 1, 1, 1, 1, 1, 8]


def test_one_cache_extended_twice() -> None:
    first, second, third = (draw(1) for _ in range(3))
    *_, start = grown([draw(2), first])
    kept = start[0].clone()
    one, other = extend(start, *second), extend(start, *third)
    assert torch.equal(one[0], torch.cat((kept, second[0]), -2))
    assert torch.equal(other[0], torch.cat((kept, third[0]), -2))
    assert torch.equal(start[0], kept)


def test_a_cache_of_ones_own_and_one_of_another_precision() -> None:
    k, v = draw(3)
    assert torch.equal(extend((k, v), *draw(1))[0][:, :, :3], k)
    *_, cache = grown([draw(2), draw(1)])
    assert extend(cache, *(z.double() for z in draw(1)))[1].dtype == torch.float64


def test_a_cache_from_inference_mode_goes_on_outside() -> None:
    with torch.inference_mode():
        *_, cache = grown([draw(2), draw(1)])
    assert extend(cache, *draw(1))[0].shape[-2] == 4


@pytest.mark.parametrize("needs_grad", [False, True])
def test_gradients_reach_the_tokens_before(needs_grad: bool) -> None:
    k, v = (z.requires_grad_() for z in draw(2))
    last = [z.requires_grad_(needs_grad) for z in draw(1)]
    extend(extend(None, k, v), *last)[0].sum().backward()
    assert k.grad is not None
    assert torch.equal(k.grad, torch.ones_like(k))


def test_what_softmax_remembers_is_what_it_decodes_with() -> None:
    module = build_attention("softmax", {}, dim=8, heads=2, seq_len=9, causal=True).eval()
    x = torch.randn(2, 9, 8)
    with torch.no_grad():
        state = module.remember(x[:, 4:8], module.remember(x[:, :4]))  # type: ignore[operator]
        assert torch.equal(state[0], module.decode(x[:, :8])[1][0])  # type: ignore[operator]
        out, _ = module.decode(x[:, 8:], state)  # type: ignore[operator]
        torch.testing.assert_close(out[:, 0], module(x)[:, 8])
    with pytest.raises(ValueError, match="only a causal mechanism decodes"):
        build_attention("softmax", {}, dim=8, heads=2, seq_len=9).remember(x)  # type: ignore[operator]
