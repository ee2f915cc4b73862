"""A classifier of digits that trains in a second, a small random one in float64, and fresh generators."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest
import sklearn.datasets
import torch
import torch.nn.functional as F
from torch import Tensor, nn


class Case(NamedTuple):
    """A model and images with their labels."""

    model: nn.Module
    images: Tensor
    labels: Tensor


@pytest.fixture(scope="session")
def digits() -> Case:
    """Right on about nine in ten of the 497 images here. Not to be changed."""
    bunch = sklearn.datasets.load_digits()
    images = torch.tensor(bunch.images / 16, dtype=torch.float32)[:, None]
    labels = torch.tensor(bunch.target)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Sequential(nn.Flatten(), nn.Linear(64, 64), nn.GELU(), nn.Linear(64, 10))
        optimizer = torch.optim.Adam(model.parameters(), lr=5e-3)
        for _ in range(15):
            for batch in torch.randperm(1300).split(128):
                optimizer.zero_grad()
                F.cross_entropy(model(images[batch]), labels[batch]).backward()
                optimizer.step()
    model.eval().requires_grad_(False).zero_grad()
    right = (model(images[1300:]).argmax(1) == labels[1300:]).double().mean()
    assert right > 0.9
    return Case(model, images[1300:], labels[1300:])


@pytest.fixture
def colours() -> Case:
    """Twenty random colour images and a random model of five classes, float64."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(108, 32), nn.GELU(), nn.Linear(32, 5))
    images = torch.rand(20, 3, 6, 6, dtype=torch.float64)
    images[0, 0, :2] = torch.tensor([[0.0], [1.0]])
    return Case(model.double().eval().requires_grad_(False), images, torch.arange(20) % 5)


@pytest.fixture
def draws() -> Callable[..., torch.Generator]:
    """``draws(seed=0)``: a fresh generator."""
    return lambda seed=0: torch.Generator().manual_seed(seed)
