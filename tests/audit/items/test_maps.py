"""Otsu's split against every split, and the area under the curve against scikit-learn's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score
from torch import Tensor

from kattn_cli.audit.items.maps.measure import foreground, map_auc, null_auc


def _digits(count: int = 40) -> Tensor:
    return torch.from_numpy(load_digits().images[:count] / 16)[:, None].float()


def _best_split(values: list[float]) -> float:
    """The threshold with the least variance within the two groups, tried one after the other."""
    costs = {}
    for threshold in sorted(set(values))[:-1]:
        groups = [np.array([v for v in values if (v > threshold) == bright]) for bright in (True, False)]
        costs[threshold] = sum(len(group) * group.var() for group in groups)
    return min(costs, key=lambda threshold: costs[threshold])


def test_is_otsu_on_the_means_of_patches() -> None:
    images = _digits()
    found = foreground(images, (4, 4))
    assert found.shape == (40, 16)
    means = images[:, 0].unfold(1, 2, 2).unfold(2, 2, 2).mean((-2, -1)).flatten(1)
    for image, bright in zip(means.tolist(), found.tolist(), strict=True):
        assert [value > _best_split(image) for value in image] == bright
    assert 0.2 < found.double().mean() < 0.6


def test_row_and_column_of_a_bright_patch() -> None:
    """Channels count alike; patches are numbered row by row; a patch of 3 × 2 pixels in a 2 × 4 grid."""
    images = torch.zeros(1, 3, 6, 8)
    images[0, 1, 3:, 4:6] = 1
    assert foreground(images, (2, 4)).nonzero().tolist() == [[0, 6]]


@pytest.mark.parametrize("level", [0.0, 0.3, 1.0])
def test_image_of_one_intensity_has_no_foreground(level: float) -> None:
    assert not foreground(torch.full((1, 3, 28, 28), level), (7, 7)).any()


@pytest.mark.parametrize("decimals", [1, 6])
def test_area_equals_that_of_scikit_learn(decimals: int) -> None:
    """With one decimal there are many ties."""
    bright = foreground(_digits(10), (4, 4))
    maps = torch.rand(10, 3, 16, generator=torch.Generator().manual_seed(0)).round(decimals=decimals)
    found = map_auc(maps, bright)
    for b in range(10):
        for h in range(3):
            torch.testing.assert_close(found[b, h].item(), roc_auc_score(bright[b], maps[b, h]))


def test_area_of_known_maps() -> None:
    """The foreground itself, its opposite, and a map that is the same everywhere."""
    bright = foreground(_digits(5), (4, 4))
    maps = torch.stack((bright.float(), -bright.float(), torch.ones(5, 16)), 1)
    assert map_auc(maps, bright).unique(dim=0).tolist() == [[1, 0, 0.5]]


def test_area_needs_both_kinds() -> None:
    bright = torch.tensor([[True, True], [False, False], [True, False]])
    found = map_auc(torch.rand(3, 1, 2, generator=torch.Generator().manual_seed(0)), bright)
    assert found.isnan().flatten().tolist() == [True, True, False]


def test_null_is_the_mean_over_other_images() -> None:
    """With as many shifts as there are others, each other image once."""
    bright = foreground(_digits(5), (4, 4))
    maps = torch.rand(5, 2, 16, generator=torch.Generator().manual_seed(0))
    found = null_auc(maps, bright, shifts=9)
    for b in range(5):
        areas = [map_auc(maps[b : b + 1], bright[other : other + 1]) for other in range(5) if other != b]
        torch.testing.assert_close(found[b], torch.stack(areas).mean(0)[0])


def test_null_sees_what_the_place_tells() -> None:
    """A map of the mean image finds other images' foreground as well as each one's own; the foreground does not."""
    bright = foreground(_digits(200), (4, 4))
    place = bright.double().mean(0).expand(200, 1, 16)
    own, other = map_auc(place, bright), null_auc(place, bright)
    assert own.mean() > 0.8
    assert abs(own.mean() - other.mean()) < 0.01
    assert null_auc(bright.double()[:, None], bright).mean() < 0.85


def test_null_leaves_out_images_of_one_kind() -> None:
    bright = torch.tensor([[False, False, False], [True, False, False], [False, True, False]])
    maps = torch.tensor([[[3.0, 2, 1]]]).expand(3, 1, 3)
    assert null_auc(maps, bright).flatten().tolist()[1:] == [0.5, 1.0]
    assert null_auc(maps, bright)[0].isnan()


def test_shifts_are_spread_over_a_batch_in_order_of_its_classes() -> None:
    """Ten images of one kind and ten of its opposite: the one shift goes to the other kind."""
    bright = torch.tensor([[True, False]] * 10 + [[False, True]] * 10)
    assert (null_auc(bright.double()[:, None], bright, shifts=1) == 0).all()


def test_null_needs_another_image() -> None:
    with pytest.raises(ValueError, match="there is one image"):
        null_auc(torch.ones(1, 1, 2), torch.tensor([[True, False]]))
