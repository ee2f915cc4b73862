"""Augmentation of single images, as timm does it for DeiT."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data import auto_augment, create_transform
from torch import Tensor
from torchvision.transforms import InterpolationMode, RandomResizedCrop
from torchvision.transforms.functional import pil_to_tensor

from kattn_cli.recipe.train import Train
from kattn_cli.training.augment.transforms import train_transform

DEIT = Train(crop_scale=0.08, flip=0.5, randaugment="rand-m9-mstd0.5-inc1")


def picture(width: int = 50, height: int = 40, mode: str = "RGB") -> Image.Image:
    rng = np.random.default_rng(0)
    coarse = Image.fromarray(rng.integers(0, 256, (6, 7, 3), dtype=np.uint8))
    return coarse.resize((width, height), Image.Resampling.BICUBIC).convert(mode)


def seed(value: int) -> None:
    random.seed(value)
    np.random.seed(value)
    torch.manual_seed(value)


def drawn(transform: Callable[[Image.Image], Tensor], image: Image.Image, value: int) -> Tensor:
    seed(value)
    return transform(image)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK"])
def test_every_mode_becomes_what_is_asked_for(mode: str, channels: int) -> None:
    transform = train_transform(DEIT, 24, channels)
    image = picture(mode=mode)
    before = image.tobytes()
    for value in range(10):
        result = drawn(transform, image, value)
        assert result.shape == (channels, 24, 24)
        assert result.dtype == torch.uint8
    assert image.tobytes() == before


def test_seeds_decide_here_and_in_a_worker() -> None:
    transform = train_transform(DEIT, 24, 3)
    sent = pickle.loads(pickle.dumps(transform))
    results = [drawn(transform, picture(), value) for value in range(30)]
    for value, result in enumerate(results):
        assert torch.equal(drawn(transform, picture(), value), result)
        assert torch.equal(drawn(sent, picture(), value), result)
    assert len({result.numpy().tobytes() for result in results}) == 30


def test_randaugment_is_timms() -> None:
    """After the crop and flip, which timm draws otherwise: with those off, equal image by image."""
    ours = train_transform(Train(randaugment="rand-m8-mstd0.5-inc1"), 40, 3)
    theirs: Any = create_transform(
        40, is_training=True, auto_augment="rand-m8-mstd0.5-inc1", interpolation="bicubic", hflip=0.0, normalize=False
    )
    square, changed = picture(40, 40), 0
    for value in range(200):
        result = drawn(ours, square, value)
        seed(value)
        expected: Any = square
        for step in theirs.transforms[1:]:
            expected = step(expected)
        assert torch.equal(result, expected)
        changed += not torch.equal(result, pil_to_tensor(square))
    assert 120 < changed < 180


def test_posterize_keeps_a_bit_and_never_raises() -> None:
    image = picture(8, 8)
    for policy in ("rand-m10-inc1", "rand-m0", "rand-m9-mstd0.5-inc1-p1"):
        transform = train_transform(Train(randaugment=policy), 8, 3)
        seed(0)
        for _ in range(2000):
            transform(image)


def test_timms_own_posterize_would_raise() -> None:
    level_fns: dict[str, Any] = auto_augment.LEVEL_TO_ARG
    assert level_fns["PosterizeIncreasing"](10.0, {}) == (0,), "the guard is no longer needed"
    assert level_fns["Posterize"](2.4, {}) == (0,)
    try:
        black = auto_augment.posterize(picture(), 0)
    except ValueError:
        return
    assert black.getextrema() == ((0, 0),) * 3, "before Pillow 13"


def test_timm_itself_is_left_alone() -> None:
    before = dict(auto_augment.LEVEL_TO_ARG), dict(auto_augment.NAME_TO_OP)
    train_transform(DEIT, 24, 3)
    assert before == (auto_augment.LEVEL_TO_ARG, auto_augment.NAME_TO_OP)


def test_the_strongest_posterize_keeps_one_bit() -> None:
    transform = train_transform(Train(randaugment="rand-m10-inc1-p1-n1"), 32, 3)
    augment = transform.transforms[-2]  # type: ignore[attr-defined]
    (posterize,) = (one for one in augment.ops if one.name == "PosterizeIncreasing")
    assert set(np.unique(np.asarray(posterize(picture())))) == {0, 128}


@pytest.mark.parametrize(("policy", "increasing"), [("rand-m9-inc0", False), ("rand-m9", False), ("rand-inc1", True)])
def test_inc_is_read_alike_by_every_timm(policy: str, increasing: bool) -> None:
    augment = train_transform(Train(randaugment=policy), 32, 3).transforms[-2]  # type: ignore[attr-defined]
    assert any(one.name == "ColorIncreasing" for one in augment.ops) == increasing


def test_without_a_crop_it_is_the_central_square() -> None:
    result = train_transform(Train(), 20, 3)(picture(50, 40))
    square = picture(50, 40).resize((25, 20), Image.Resampling.BICUBIC).crop((2, 0, 22, 20))
    assert torch.equal(result, pil_to_tensor(square))


def test_the_resized_crop_is_inceptions_bicubic() -> None:
    crop = RandomResizedCrop(24, scale=(0.3, 1.0), ratio=(3 / 4, 4 / 3), interpolation=InterpolationMode.BICUBIC)
    for value in range(10):
        result = drawn(train_transform(Train(crop_scale=0.3), 24, 3), picture(), value)
        seed(value)
        assert torch.equal(result, pil_to_tensor(crop(picture())))


def test_crop_padding_moves_the_square_with_zeros_coming_in() -> None:
    plain = train_transform(Train(), 20, 1)(picture())
    padded = torch.nn.functional.pad(plain, (2, 2, 2, 2))
    places = set()
    for value in range(60):
        result = drawn(train_transform(Train(crop_padding=2), 20, 1), picture(), value)
        found = [
            (top, left)
            for top in range(5)
            for left in range(5)
            if torch.equal(result, padded[:, top : top + 20, left : left + 20])
        ]
        assert len(found) == 1
        places.add(found[0])
    assert len(places) > 15


def test_flips_and_crops_are_random() -> None:
    plain = train_transform(Train(), 20, 3)(picture())
    flip = train_transform(Train(flip=0.25), 20, 3)
    results = [drawn(flip, picture(), value) for value in range(400)]
    flipped = [torch.equal(result, plain.flip(2)) for result in results]
    assert sum(flipped) / 400 == pytest.approx(0.25, abs=0.06)
    assert all(torch.equal(result, plain) for result, mirrored in zip(results, flipped, strict=True) if not mirrored)
    always = train_transform(Train(crop_scale=1.0), 20, 3)
    assert len({drawn(always, picture(40, 40), value).numpy().tobytes() for value in range(10)}) == 1


def test_what_comes_in_is_the_mean() -> None:
    for channels, mean, fill in ((3, (0.1, 0.2, 0.3), [26, 51, 76]), (1, (0.5,), [128])):
        transform = train_transform(Train(randaugment="rand-m10-inc1-p1-n1"), 20, channels, mean)
        (move,) = (one for one in transform.transforms[-2].ops if one.name == "TranslateXRel")  # type: ignore[attr-defined]
        seed(0)
        moved = pil_to_tensor(move(picture(20, 20, "RGB" if channels == 3 else "L")))
        edges = [moved[:, 0, 0].tolist(), moved[:, 0, -1].tolist()]
        assert fill in edges


def test_a_policy_that_cannot_be_read_is_refused_at_once() -> None:
    with pytest.raises(ValueError, match='"mmax12" is none of m, n, p, mstd, inc'):
        train_transform(Train(randaugment="rand-mmax12"), 20, 3)
