"""A new corruption is one object and one line: it is drawn, seeded, evaluated and named like the others."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from kattn_cli.data import MemorySplit
from kattn_cli.data.corruptions import CORRUPTIONS, alexnet_errors, corrupt
from kattn_cli.data.corruptions.corruption import Corruption
from kattn_cli.tasks.images.corruptions import Corruptions, corruption_names
from kattn_cli.training.corrupted import CorruptedSplit, Making


def darker(images: Tensor, amount: float, draws: None) -> Tensor:
    return images * (1 - amount)


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(
        CORRUPTIONS, "dusk", Corruption("less light", 15, darker, (0.2, 0.4, 0.6, 0.8, 1.0), (0.5,) * 5)
    )
    return "dusk"


def test_it_corrupts_with_the_parameters_of_its_set(registered: str) -> None:
    images = torch.full((1, 1, 8, 8), 200 / 255)
    done = corrupt(images, registered, 2, torch.Generator(), "imagenet-c")
    assert (done * 255).round().unique().tolist() == [120]


def test_it_is_asked_for_by_name_and_comes_last(registered: str) -> None:
    assert corruption_names([])[-1] == registered
    assert corruption_names([registered]) == (registered,)
    assert Corruptions(names=(registered,)).names == (registered,)


def test_it_makes_a_split(registered: str) -> None:
    clean = MemorySplit(torch.full((3, 1, 8, 8), 100, dtype=torch.uint8), torch.arange(3))
    (images, labels), *_ = CorruptedSplit(clean, registered, 1, Making("cifar-c")).batches(8)
    assert (images * 255).round().unique().tolist() == [50]
    assert labels.tolist() == [0, 1, 2]


def test_no_other_seed_moves(registered: str) -> None:
    """Positions are part of each type, so that neither order nor number of types changes what is drawn."""
    positions = [one.seed_position(severity) for one in CORRUPTIONS.values() for severity in (1, 2, 3, 4, 5)]
    assert positions == list(range(16 * 5))
    assert registered not in alexnet_errors()
