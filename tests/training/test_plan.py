"""Which images each step sees, and who sees them."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.recipe.train import Train
from kattn_cli.training.plan import Plan


def plan(images: int = 23, rank: int = 0, processes: int = 1, *, accumulate: int = 1, repeats: int = 1) -> Plan:
    settings = Train(batch_size=8, epochs=3, accumulate=accumulate, repeats=repeats)
    return Plan(images, settings, seed=5, rank=rank, processes=processes)


def test_an_epoch_sees_every_image_once() -> None:
    seen = torch.cat([shard.indices for (shard,) in plan().batches(0)])
    assert sorted(seen.tolist()) == list(range(23))
    assert plan().steps_per_epoch == 3
    assert plan().steps == 9


def test_epochs_and_seeds_have_orders_of_their_own() -> None:
    orders = {tuple(plan().order(epoch).tolist()) for epoch in range(3)}
    orders.add(tuple(Plan(23, Train(), seed=6).order(0).tolist()))
    assert len(orders) == 4


def test_an_epoch_can_be_entered_at_any_batch() -> None:
    whole, rest = list(plan().batches(1)), list(plan().batches(1, first=2))
    assert torch.equal(whole[2][0].indices, rest[0][0].indices)
    assert whole[2][0].draw == rest[0][0].draw == 1 * 3 + 2


@pytest.mark.parametrize(("processes", "accumulate"), [(2, 1), (1, 2), (2, 2)])
def test_shards_deal_a_batch_among_processes_and_parts(processes: int, accumulate: int) -> None:
    batches = [(shard,) for (shard,) in plan(24).batches(0)]
    ranks = [list(plan(24, rank, processes, accumulate=accumulate).batches(0)) for rank in range(processes)]
    for step, (batch,) in enumerate(batches):
        shards = [shard for rank in ranks for shard in rank[step]]
        assert len(shards) == processes * accumulate
        assert sorted(torch.cat([shard.indices for shard in shards]).tolist()) == sorted(batch.indices.tolist())
        assert sum(shard.share for shard in shards) == pytest.approx(1)
        assert len({shard.draw for shard in shards}) == len(shards)


def test_two_processes_see_what_one_sees_in_two_parts() -> None:
    """The same images with the same random numbers, so that a training does not depend on the number of devices."""
    (one,) = [list(plan(accumulate=2).batches(1))]
    two = [list(plan(rank=rank, processes=2).batches(1)) for rank in (0, 1)]
    for step, parts in enumerate(one):
        for part, rank in zip(parts, two, strict=True):
            (shard,) = rank[step]
            assert torch.equal(part.indices, shard.indices)
            assert (part.draw, part.share) == (shard.draw, shard.share)


def test_a_last_batch_smaller_than_its_shards_is_left_out() -> None:
    assert plan(17).steps_per_epoch == 3
    assert plan(17, processes=2).steps_per_epoch == 2
    assert plan(16).steps_per_epoch == 2


def test_repeated_augmentation_keeps_the_length_and_spreads_copies_over_shards() -> None:
    """Three copies of each image, one for each of three shards, with draws of their own (DeiT)."""
    repeated = plan(24, repeats=3, accumulate=3)
    order = repeated.order(0)
    assert len(order) == 24
    assert order.unique().numel() == 8
    for shards in repeated.batches(0):
        copies = [set(shard.indices.tolist()) for shard in shards]
        assert all(len(images) == len(shard.indices) for images, shard in zip(copies, shards, strict=True))


def test_each_image_has_a_seed_of_its_own() -> None:
    planned = plan(24)
    seeds = [seed for shards in planned.batches(0) for shard in shards for seed in planned.image_seeds(shard)]
    assert len(set(seeds)) == 24


def test_seeds_of_images_follow_each_other_within_63_bits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kattn_cli.training.plan.derived_seed", lambda *_: 2**63 - 2)
    one = plan()
    ((shard,), *_) = one.batches(0)
    assert one.image_seeds(shard) == [2**63 - 2, 2**63 - 1, 0, 1, 2, 3, 4, 5]
