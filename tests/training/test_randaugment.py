"""RandAugment in batches, against timm's operations on Pillow images."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from timm.data import auto_augment
from torch import Tensor

from kattn_cli.training.augment.randaugment import (
    MOVES,
    OPERATIONS,
    POINTWISE,
    Policy,
    RandAugment,
    _grey,
    argument,
    fill_levels,
    matrices,
    parse_policy,
    warp,
)

MAGNITUDES = (0.0, 0.6, 2.4, 2.5, 5.0, 7.3, 9.0, 9.99, 10.0)
MEAN = (0.485, 0.456, 0.406)
FILL = (124, 116, 104)


def timm_name(operation: str, increasing: bool) -> str:
    if operation.startswith("Translate"):
        return f"{operation}Rel"
    grows = operation in ("Posterize", "Solarize", "Color", "Contrast", "Brightness", "Sharpness")
    return f"{operation}Increasing" if increasing and grows else operation


def pictures(count: int, channels: int = 3, height: int = 20, width: int = 26) -> Tensor:
    """Levels with structure and noise, of low, middle and full contrast; the last has two values alone."""
    rng = np.random.default_rng(5)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x / rng.uniform(2, 9) + y / rng.uniform(2, 9) + rng.uniform(0, 6)) for _ in range(count * channels)]
    smooth = np.stack(waves).reshape(count, channels, height, width)
    contrast = np.linspace(20, 127, count)[:, None, None, None]
    levels = 128 + contrast * smooth + rng.normal(0, 6, smooth.shape)
    levels[-1] = np.where(smooth[-1] > 0.9, 200, 30)
    return torch.tensor(levels).clamp(0, 255).round().float()


def to_pil(levels: Tensor) -> Image.Image:
    array = levels.byte().permute(1, 2, 0).numpy()
    return Image.fromarray(array[..., 0] if len(levels) == 1 else array)


def from_pil(image: Image.Image) -> Tensor:
    array = torch.tensor(np.asarray(image)).float()
    return array[None] if array.ndim == 2 else array.permute(2, 0, 1)


def with_sign(monkeypatch: pytest.MonkeyPatch, sign: int) -> None:
    """timm negates when this is above 0.5."""
    monkeypatch.setattr(random, "random", lambda: 0.75 if sign < 0 else 0.25)


def timm_argument(name: str, magnitude: float) -> tuple[float, ...]:
    level_fn = auto_augment.LEVEL_TO_ARG[name]
    return level_fn(magnitude, {"translate_const": 9}) if level_fn else ()


@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("increasing", [False, True])
def test_arguments_are_timms(monkeypatch: pytest.MonkeyPatch, increasing: bool, sign: int) -> None:
    with_sign(monkeypatch, sign)
    checked = 0
    for operation in OPERATIONS:
        ours = argument(operation, torch.tensor(MAGNITUDES).double(), torch.tensor(sign), increasing)
        for magnitude, value in zip(torch.tensor(MAGNITUDES).double().tolist(), ours.tolist(), strict=True):
            for theirs in timm_argument(timm_name(operation, increasing), magnitude):
                expected = max(1, theirs) if operation == "Posterize" else theirs
                assert value == pytest.approx(expected, abs=1e-12), (operation, magnitude)
                checked += 1
    assert checked == 12 * len(MAGNITUDES)


def test_the_operations_are_timms() -> None:
    for increasing, theirs in (
        (True, auto_augment._RAND_INCREASING_TRANSFORMS),
        (False, auto_augment._RAND_TRANSFORMS),
    ):
        assert {timm_name(one, increasing) for one in OPERATIONS} == set(theirs)
    assert len(OPERATIONS) == 15


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("increasing", [False, True])
@pytest.mark.parametrize("operation", POINTWISE)
def test_pointwise_operations_equal_pillows(
    monkeypatch: pytest.MonkeyPatch, operation: str, increasing: bool, channels: int
) -> None:
    levels = pictures(6, channels)
    name = timm_name(operation, increasing)
    for sign in (-1, 1):
        with_sign(monkeypatch, sign)
        for magnitude in MAGNITUDES:
            values = argument(operation, torch.full((6,), magnitude).double(), torch.tensor(sign), increasing)
            ours = POINTWISE[operation](levels, values.float()[:, None, None, None])
            expected = torch.tensor(timm_argument(name, magnitude))
            if operation == "Posterize":
                expected = expected.clamp(min=1)
            apply: Any = auto_augment.NAME_TO_OP[name]
            theirs = torch.stack([from_pil(apply(to_pil(image), *expected.tolist())) for image in levels])
            error = (ours - theirs).abs()
            assert error.max() <= 1, (magnitude, sign)
            assert error.mean() < 0.01, (magnitude, sign)


def test_operations_treat_every_image_with_its_own_argument() -> None:
    levels = pictures(4)
    values = torch.tensor([2.0, 100.0, 200.0, 255.0])[:, None, None, None]
    together = POINTWISE["Solarize"](levels, values)
    for image, value, result in zip(levels, values, together, strict=True):
        assert torch.equal(POINTWISE["Solarize"](image[None], value[None])[0], result)
    assert torch.equal(together[3], torch.where(levels[3] == 255, 0.0, levels[3]))


def test_grey_is_pillow_s_of_every_hundredth_colour() -> None:
    """A weight that is off by one in 65,536 is seen in a few of them."""
    every = torch.arange(0, 256**3, 97)[: 400 * 400]
    levels = torch.stack([every // 65536, every // 256 % 256, every % 256]).float().view(1, 3, 400, 400)
    expected = torch.tensor(np.asarray(to_pil(levels[0]).convert("L"))).float()
    assert torch.equal(_grey(levels)[0, 0], expected)


def test_colour_leaves_grey_images_alone() -> None:
    levels = pictures(3, channels=1)
    assert torch.equal(POINTWISE["Color"](levels, torch.full((3, 1, 1, 1), 0.1)), levels)


def pillow_moved(operation: str, levels: Tensor, magnitude: float, resample: Image.Resampling) -> Tensor:
    name = timm_name(operation, True)
    apply: Any = auto_augment.NAME_TO_OP[name]
    (value,) = timm_argument(name, magnitude)
    fill = FILL if levels.shape[1] == 3 else FILL[0]
    moved = [from_pil(apply(to_pil(image), value, resample=resample, fillcolor=fill)) for image in levels]
    return torch.stack(moved)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("sign", [-1, 1])
@pytest.mark.parametrize("operation", MOVES)
def test_moves_equal_pillows(monkeypatch: pytest.MonkeyPatch, operation: str, sign: int, channels: int) -> None:
    with_sign(monkeypatch, sign)
    levels, fill = pictures(6, channels), FILL[:channels]
    smooth = torch.nn.functional.avg_pool2d(levels, 5, 1, 2, count_include_pad=False).round()
    for magnitude in MAGNITUDES:
        value = argument(operation, torch.full((6,), magnitude).double(), torch.tensor(sign), True)
        matrix = matrices(operation, value, *levels.shape[2:]).float()
        error = warp(levels, matrix, fill, mode="bilinear") - pillow_moved(
            operation, levels, magnitude, Image.Resampling.BILINEAR
        )
        assert error.abs().max() <= 1
        assert error.abs().mean() < 0.03

        bicubic = pillow_moved(operation, levels, magnitude, Image.Resampling.BICUBIC)
        assert (warp(levels, matrix, fill) - bicubic).abs().mean() < 1.5
        bicubic = pillow_moved(operation, smooth, magnitude, Image.Resampling.BICUBIC)
        assert (warp(smooth, matrix, fill) - bicubic).abs().max() <= 4


def test_a_move_by_nothing_changes_nothing() -> None:
    levels = pictures(2, height=224, width=224)
    for operation in MOVES:
        matrix = matrices(operation, torch.zeros(2).double(), 224, 224).float()
        assert torch.equal(warp(levels, matrix, FILL), levels)


def test_the_fill_is_the_mean() -> None:
    assert fill_levels(MEAN) == FILL
    matrix = matrices("TranslateX", torch.tensor([0.45]).double(), 20, 26).float()
    moved = warp(torch.full((1, 3, 20, 26), 7.0), matrix, FILL)
    assert (moved[0, :, :, -11:] == torch.tensor(FILL)[:, None, None]).all()
    assert (moved[0, :, :, :-12] == 7).all()


def named(augment: RandAugment, monkeypatch: pytest.MonkeyPatch, count: int) -> Counter[tuple[str, ...]]:
    """Which operations each of ``count`` images met, by replacing each with one that leaves a mark."""
    marks = torch.zeros(count, len(OPERATIONS))
    place = torch.arange(count).float()[:, None, None, None].expand(count, 1, 1, 2).clone()

    def marking(number: int) -> Callable[[Tensor, Tensor], Tensor]:
        def apply(levels: Tensor, _: Tensor) -> Tensor:
            marks[levels[:, 0, 0, 0].long(), number] += 1
            return levels

        return apply

    for number, name in enumerate(POINTWISE):
        monkeypatch.setitem(POINTWISE, name, marking(number))

    def warped(levels: Tensor, matrix: Tensor, fill: object) -> Tensor:
        kinds = [
            (matrix[:, 0] != 1),
            (matrix[:, 1] != 0) & (matrix[:, 0] == 1),
            (matrix[:, 3] != 0) & (matrix[:, 0] == 1),
            matrix[:, 2] * (matrix[:, 0] == 1) != 0,
            matrix[:, 5] * (matrix[:, 0] == 1) != 0,
        ]
        for number, kind in enumerate(kinds, len(POINTWISE)):
            marks[levels[kind][:, 0, 0, 0].long(), number] += 1
        return levels

    monkeypatch.setattr("kattn_cli.training.augment.randaugment.warp", warped)
    augment(place / 255)
    return Counter(tuple(np.repeat(OPERATIONS, row.int())) for row in marks)


def test_each_operation_is_as_likely_as_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    count = 30_000
    met = named(RandAugment("rand-m9-mstd0.5-inc1", MEAN[:1]), monkeypatch, count)
    number = Counter(len(names) for names in met.elements())
    for applied, share in enumerate((0.25, 0.5, 0.25)):
        assert number[applied] / count == pytest.approx(share, abs=0.01)
    single = Counter(name for names in met.elements() for name in names)
    assert set(single) == set(OPERATIONS)
    for name in OPERATIONS:
        assert single[name] / count == pytest.approx(1 / 15, abs=0.006), name
    assert sum(len(set(names)) < len(names) for names in met.elements()) / count == pytest.approx(0.25 / 15, abs=0.004)


def test_magnitudes_and_signs_are_timms(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[Tensor] = []

    def keep(operation: str, magnitude: Tensor, sign: Tensor, increasing: bool) -> Tensor:
        assert increasing
        drawn.append(torch.stack([magnitude, sign.double()]))
        return torch.ones_like(magnitude)

    monkeypatch.setattr("kattn_cli.training.augment.randaugment.argument", keep)
    RandAugment("rand-m9-mstd0.5-inc1-p1-n1", MEAN[:1])(torch.zeros(20_000, 1, 2, 2))
    magnitude, sign = torch.cat(drawn, 1)
    assert magnitude.mean() == pytest.approx(9 - 0.0042, abs=0.02)
    assert magnitude.std() == pytest.approx(0.49, abs=0.02)
    assert (magnitude == 10).double().mean() == pytest.approx(0.0228, abs=0.004)
    assert magnitude.max() == 10
    assert sign.abs().min() == 1
    assert sign.mean() == pytest.approx(0, abs=0.03)

    drawn.clear()
    monkeypatch.setattr("kattn_cli.training.augment.randaugment.argument", lambda o, m, s, i: keep(o, m, s, True))
    RandAugment("rand-m8-mstd101-p1-n1", MEAN[:1])(torch.zeros(20_000, 1, 2, 2))
    magnitude, _ = torch.cat(drawn, 1)
    assert 0 <= magnitude.min() < 0.01
    assert 7.99 < magnitude.max() <= 8
    assert magnitude.mean() == pytest.approx(4, abs=0.06)


def test_never_all_black_from_posterize() -> None:
    for increasing in (False, True):
        bits = argument("Posterize", torch.linspace(0, 10, 101).double(), torch.tensor(1), increasing)
        assert bits.min() == 1
        assert bits.max() == 4
    kept = POINTWISE["Posterize"](torch.arange(256.0).view(1, 1, 16, 16), torch.ones(1, 1, 1, 1))
    assert kept.unique().tolist() == [0, 128]


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("policy", ["rand-m9-mstd0.5-inc1", "rand-m3-mstd1"])
def test_batches_stay_batches(policy: str, channels: int) -> None:
    augment = RandAugment(policy, MEAN[:channels])
    images = pictures(120, channels) / 255
    before = images.clone()
    torch.manual_seed(3)
    first = augment(images)
    torch.manual_seed(3)
    second = augment(images)
    assert torch.equal(first, second)
    assert torch.equal(images, before)
    assert first.shape == images.shape
    assert first.dtype == torch.float32
    assert first.min() >= 0
    assert first.max() <= 1
    unchanged = (first == images).flatten(1).all(1).double().mean()
    assert 0.2 < unchanged < 0.5
    assert not torch.equal(augment(images), first)


def test_what_no_operation_meets_is_rounded_as_in_a_file() -> None:
    images = torch.tensor([0.0, 0.3 / 255, 7.4 / 255, 7.6 / 255, 1.0]).view(1, 1, 1, 5)
    expected = torch.tensor([0.0, 0.0, 7.0, 8.0, 255.0]).view(1, 1, 1, 5) / 255
    assert torch.equal(RandAugment("rand-m9-p0", MEAN[:1])(images), expected)


def test_tiny_images_and_single_ones() -> None:
    augment = RandAugment("rand-m9-p1-inc1", MEAN)
    for shape in ((40, 3, 2, 2), (1, 3, 8, 8), (40, 3, 1, 5)):
        assert augment(torch.rand(shape)).isfinite().all()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("rand-m9-mstd0.5-inc1", Policy(9, 2, 0.5, 0.5, True)),
        ("rand-n3-m10-p1-inc0", Policy(10, 3, 1.0, 0.0, False)),
        ("rand", Policy(10, 2, 0.5, 0.0, False)),
    ],
)
def test_notation(text: str, expected: Policy) -> None:
    assert parse_policy(text) == expected
    theirs = auto_augment.rand_augment_transform(text, {"translate_const": 9, "img_mean": FILL})
    assert theirs.num_layers == expected.layers
    assert {one.magnitude for one in theirs.ops} == {expected.magnitude}
    assert {one.magnitude_std for one in theirs.ops} == {expected.std}
    assert {one.prob for one in theirs.ops} == {expected.probability}


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("augmix-m3", 'must begin with "rand", as in rand-m9-mstd0.5-inc1, not with "augmix"'),
        ("rand-m9-w0", '"w0" is none of m, n, p, mstd, inc with a number, as in rand-m9-mstd0.5-inc1'),
        ("rand-tweights", '"tweights" is none of'),
        ("rand-mmax20", '"mmax20" is none of'),
        ("rand-", '"" is none of'),
        ("rand-m11", '"m11": m takes a whole number from 0 to 10, as in'),
        ("rand-m9.5", '"m9.5": m takes a whole number from 0 to 10'),
        ("rand-m", '"m": m takes'),
        ("rand-m9-n0", '"n0": n takes a whole number from 1 to 15'),
        ("rand-p1.5", '"p1.5": p takes a number from 0 to 1'),
        ("rand-mstd.", '"mstd.": mstd takes a number such as 0.5'),
        ("rand-inc2", '"inc2": inc takes 0 or 1'),
        ("rand-m9-m7", '"m7": m is given twice'),
    ],
)
def test_faults_of_the_notation(text: str, fault: str) -> None:
    with pytest.raises(ValueError, match=r".") as caught:
        RandAugment(text, MEAN)
    assert str(caught.value).startswith(fault)
