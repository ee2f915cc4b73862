"""Padded sequences: what a batch is cut to and what its mask says; statistics of channels without the padding."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.data.sequences import SequenceData, SequenceSplit, channel_moments, padded

LENGTHS = (2, 4, 1, 4, 3)


def of_tokens() -> SequenceSplit:
    """Sequence ``i`` is ``10·i + 1, 10·i + 2, …``; bytes, as the data sets keep them."""
    sequences = [torch.arange(1, length + 1, dtype=torch.uint8) + 10 * i for i, length in enumerate(LENGTHS)]
    return padded(sequences, torch.tensor([0, 1, 2, 0, 1]))


def of_pairs() -> SequenceSplit:
    values = torch.arange(24, dtype=torch.int32).reshape(3, 2, 4)
    return SequenceSplit(values, torch.tensor([[1, 2], [3, 1], [2, 2]]), torch.tensor([0, 1, 0]))


def test_padded_with_zeros_at_the_end() -> None:
    split = of_tokens()
    assert split.values.tolist() == [[1, 2, 0, 0], [11, 12, 13, 14], [21, 0, 0, 0], [31, 32, 33, 34], [41, 42, 43, 0]]
    assert split.lengths.tolist() == list(LENGTHS)
    assert len(split) == 5


def test_a_batch_is_cut_to_its_longest() -> None:
    (values, mask), labels = of_tokens().take(torch.tensor([4, 2, 0]))
    assert values.dtype == torch.int64
    assert values.tolist() == [[41, 42, 43], [21, 0, 0], [1, 2, 0]]
    assert mask is not None
    assert mask.tolist() == [[True, True, True], [True, False, False], [True, True, False]]
    assert labels.tolist() == [1, 2, 0]


def test_no_mask_without_padding() -> None:
    (values, mask), _ = of_tokens().take(torch.tensor([3, 1]))
    assert values.shape == (2, 4)
    assert mask is None
    (values, mask), _ = of_tokens().take(slice(2, 3))
    assert values.tolist() == [[21]]
    assert mask is None


def test_pairs_are_cut_together() -> None:
    (values, mask), labels = of_pairs().take(torch.tensor([2, 0]))
    assert values.tolist() == [[[16, 17], [20, 21]], [[0, 1], [4, 5]]]
    assert mask is not None
    assert mask.tolist() == [[[True, True], [True, True]], [[True, False], [True, True]]]
    assert labels.tolist() == [0, 0]
    (values, mask), _ = of_pairs().take(torch.tensor([2]))
    assert values.shape == (1, 2, 2)
    assert mask is None


def test_subset_first_and_batches() -> None:
    split = of_tokens()
    chosen = split.subset(torch.tensor([4, 0]))
    assert (chosen.lengths.tolist(), chosen.labels.tolist()) == ([3, 2], [1, 0])
    assert split.first(2).labels.tolist() == [0, 1]
    assert len(split.first(None)) == len(split.first(99)) == 5
    batches = list(split.batches(2))
    assert [tuple(one.values.shape) for one, _ in batches] == [(2, 4), (2, 4), (1, 3)]
    assert [label for _, labels in batches for label in labels.tolist()] == [0, 1, 2, 0, 1]


def test_moments_of_channels_by_hand() -> None:
    """Over the steps of all series alike, so a longer one counts for more; the padding's zeros for nothing."""
    series = [torch.tensor([[1.0, 5.0], [2.0, 5.0], [3.0, 5.0]]), torch.tensor([[6.0, 5.0]])]
    mean, std = channel_moments(padded(series, torch.zeros(2, dtype=torch.int64)))
    assert mean == pytest.approx((3, 5))
    assert std == pytest.approx(((14 / 3) ** 0.5, 1))
    assert channel_moments(padded(series[1:], torch.zeros(1, dtype=torch.int64))) == ((6, 5), (1, 1))


@pytest.mark.parametrize(
    ("channels", "pairs", "shape", "dtype"),
    [
        (3, False, (2, 7, 3), torch.float32),
        (0, False, (2, 7), torch.int64),
        (0, True, (2, 2, 7), torch.int64),
    ],
)
def test_sample_is_of_the_greatest_length(
    channels: int, pairs: bool, shape: tuple[int, ...], dtype: torch.dtype
) -> None:
    data = SequenceData("some", 2, 7, channels, 0 if channels else 9, pairs, (), (), {})
    values, mask = data.sample(2, "cpu")
    assert (tuple(values.shape), values.dtype, mask) == (shape, dtype, None)
    assert values.unique().numel() > 1
