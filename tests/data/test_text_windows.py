"""Windows of a text, where they begin in each epoch, and what is never read: past the end."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor

from kattn_cli.data.text import TokenSplit, windows_of
from kattn_cli.recipe.train import Train
from kattn_cli.training.feed import TextFeed
from kattn_cli.training.plan import Plan

CONTEXT = 4


def numbered(length: int) -> TokenSplit:
    """A text whose tokens are their places."""
    return windows_of(np.arange(length, dtype=np.uint16), CONTEXT, length)


def starts(inputs: Tensor) -> list[int]:
    return inputs[:, 0].tolist()


@pytest.mark.parametrize(("length", "count"), [(0, 0), (1, 0), (4, 0), (5, 1), (8, 1), (9, 2), (12, 2), (13, 3)])
def test_as_many_windows_as_have_a_target_each(length: int, count: int) -> None:
    assert len(numbered(length)) == count


def test_windows_do_not_overlap_and_targets_are_one_further() -> None:
    inputs, targets = numbered(13).take(torch.tensor([2, 0]))
    assert inputs.dtype == targets.dtype == torch.int64
    assert inputs.tolist() == [[8, 9, 10, 11], [0, 1, 2, 3]]
    assert torch.equal(targets, inputs + 1)


@pytest.mark.parametrize("length", [5, 13, 14, 16])
@pytest.mark.parametrize("shift", range(CONTEXT))
def test_no_shift_reads_past_the_end(length: int, shift: int) -> None:
    """A window that would stays where it is; each other one begins so much later."""
    split = numbered(length)
    inputs, targets = split.take(torch.arange(len(split)), shift)
    assert torch.equal(targets, inputs + 1)
    assert targets.max() < length
    for window, start in enumerate(starts(inputs)):
        moved = CONTEXT * window + shift
        assert start == (moved if moved + CONTEXT < length else CONTEXT * window)


def test_what_is_left_over_at_the_end_is_read_with_a_shift() -> None:
    assert numbered(16).take(torch.tensor([2]), 3)[1].tolist() == [[12, 13, 14, 15]]


def test_subset_first_and_batches() -> None:
    split = numbered(40)
    assert starts(split.subset(torch.tensor([7, 1])).take(slice(None))[0]) == [28, 4]
    assert starts(split.first(2).take(slice(None))[0]) == [0, 4]
    assert len(split.first(None)) == 9
    batches = [starts(inputs) for inputs, _ in split.subset(torch.tensor([8, 3, 5])).batches(2)]
    assert batches == [[32, 12], [20]]
    assert split.to(torch.device("cpu")).bytes_ == 40


def test_of_a_file_only_the_windows_asked_for_are_copied(tmp_path: Path) -> None:
    np.arange(40, dtype=np.uint16).tofile(tmp_path / "tokens.bin")
    tokens = np.memmap(tmp_path / "tokens.bin", np.uint16, mode="r")
    inputs, _ = windows_of(tokens, CONTEXT, 40).take(torch.tensor([3]))
    inputs += 100
    assert tokens[12] == 12


def feed(seed: int = 0, length: int = 200, epochs: int = 6, accumulate: int = 1) -> TextFeed:
    split = numbered(length)
    settings = Train(epochs=epochs, batch_size=8, accumulate=accumulate, warmup_epochs=0)
    return TextFeed(split, Plan(len(split), settings, seed))


def shifts(one: TextFeed) -> list[int]:
    """By how much the windows of each epoch are moved; the same for all of them, but for those at the end."""
    found: list[int] = []
    for epoch in range(one.plan.settings.epochs):
        dealt = [shard for shards in one.shards(one.plan.batches(epoch)) for shard in shards]
        moved = {start % CONTEXT for _, inputs, _ in dealt for start in starts(inputs) if start < 190}
        assert len(moved) == 1
        found += moved
    return found


def test_each_epoch_begins_its_windows_elsewhere() -> None:
    assert shifts(feed())[0] == 0
    assert len(set(shifts(feed()))) > 2
    assert shifts(feed()) == shifts(feed()) == shifts(feed(accumulate=4))
    assert shifts(feed(seed=1)) != shifts(feed())


@pytest.mark.parametrize("accumulate", [1, 3])
def test_an_epoch_begun_in_its_middle_goes_on_with_the_same_windows(accumulate: int) -> None:
    one = feed(accumulate=accumulate)
    for epoch in (0, 3):
        whole = list(one.shards(one.plan.batches(epoch)))
        rest = list(one.shards(one.plan.batches(epoch, 2)))
        for shards, again in zip(whole[2:], rest, strict=True):
            for (_, inputs, targets), (_, same, same_targets) in zip(shards, again, strict=True):
                assert torch.equal(inputs, same)
                assert torch.equal(targets, same_targets)


def test_an_epoch_sees_every_window_once() -> None:
    one = feed()
    seen = [start for shards in one.shards(one.plan.batches(0)) for _, inputs, _ in shards for start in starts(inputs)]
    assert sorted(seen) == list(range(0, 196, CONTEXT))
