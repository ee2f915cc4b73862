"""Frost: which piece of which texture is added, and photographs instead of our own ice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from kattn_cli.data.corruptions import corrupt, read_textures
from kattn_cli.data.corruptions.frost import Frost, fit, ice_textures
from kattn_cli.errors import DataError


def plain_frost(image: np.ndarray, parameters: Frost, draws: torch.Tensor) -> np.ndarray:
    height, width, channels = image.shape
    textures = [fit(texture, parameters.scale, height, width).double().numpy() for texture in ice_textures()]
    which, down, right = draws.tolist()
    texture = textures[int(which * 5)].transpose(1, 2, 0)
    top, left = int(down * (texture.shape[0] - height)), int(right * (texture.shape[1] - width))
    ice = texture[top : top + height, left : left + width]
    ice = ice if channels == 3 else (ice @ [0.299, 0.587, 0.114])[..., None]
    return parameters.image * image + 255 * parameters.frost * ice


def test_frost(check: Callable[..., None]) -> None:
    check("frost", plain_frost)


def test_a_fifth_of_a_texture_is_every_fifth_pixel() -> None:
    """The published program shrinks photographs bilinearly, without averaging, for CIFAR-10-C."""
    texture = torch.rand(3, 200, 350)
    torch.testing.assert_close(fit(texture, 0.2, 32, 32), texture[:, 2::5, 2::5], rtol=0, atol=2e-5)


def test_small_textures_are_enlarged() -> None:
    assert fit(torch.rand(3, 20, 30), 1, 40, 45).shape == (3, 40, 60)
    assert fit(torch.rand(3, 20, 30), 0.2, 10, 20).shape == (3, 13, 20)
    assert torch.equal(fit(texture := torch.rand(3, 20, 30), 1, 20, 12), texture)


def test_our_ice_is_like_the_photographs() -> None:
    """ImageNet-C's five have means of 0.48 to 0.81, deviations of 0.06 to 0.17, a spectrum falling as 1/f²."""
    for texture in ice_textures():
        assert texture.shape == (3, 512, 512)
        assert 0.45 < texture.mean() < 0.83
        grey = texture.mean(0)
        assert 0.06 < grey.std() < 0.18
        power = torch.fft.fft2(grey - grey.mean()).abs() ** 2
        frequency = torch.fft.fftfreq(512, 1 / 512)
        radius = torch.hypot(frequency, frequency[:, None])
        bands = [float(power[(radius >= low) & (radius < 2 * low)].mean()) for low in (4, 8, 16, 32, 64)]
        slope = np.polyfit(np.log([4, 8, 16, 32, 64]), np.log(bands), 1)[0]
        assert -2.4 < slope < -1.4


def test_photographs_of_a_folder(tmp_path: Path) -> None:
    """Of different sizes and kinds, by name; other files are left alone."""
    Image.new("RGB", (60, 40), (255, 0, 0)).save(tmp_path / "b.png")
    Image.new("L", (50, 70), 51).save(tmp_path / "a.JPG", "JPEG", quality=100)
    (tmp_path / "licence.txt").write_text("free")
    textures = read_textures(tmp_path)
    assert [texture.shape for texture in textures] == [(3, 70, 50), (3, 40, 60)]
    assert textures[0].unique().tolist() == pytest.approx([0.2])
    images = torch.zeros(40, 3, 32, 32)
    found = corrupt(images, "frost", 1, torch.Generator().manual_seed(0), "imagenet-c", textures)
    colours = {tuple(image.flatten(1).unique(dim=1).flatten().mul(255).round().tolist()) for image in found}
    assert colours == {(20.0, 20.0, 20.0), (102.0, 0.0, 0.0)}
    stacked = corrupt(images, "frost", 1, torch.Generator(), "imagenet-c", torch.ones(2, 3, 64, 64))
    assert stacked.unique().tolist() == pytest.approx([0.4])


def test_folders_without_photographs(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"nowhere: there is no such folder of frost photographs$"):
        read_textures(tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"there are no frost photographs, which end in \.png, \.jpg, \.jpeg$"):
        read_textures(tmp_path)
    (tmp_path / "a.png").write_text("no image")
    with pytest.raises(DataError, match=r"a\.png: cannot be read: not an image$"):
        read_textures(tmp_path)
