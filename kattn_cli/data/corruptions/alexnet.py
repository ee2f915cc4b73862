"""AlexNet's errors, which mCE on ImageNet-C is measured by."""

from __future__ import annotations

ALEXNET_ERRORS: dict[str, float] = {
    "gaussian_noise": 88.6428,
    "shot_noise": 89.4468,
    "impulse_noise": 92.264,
    "defocus_blur": 81.988,
    "glass_blur": 82.6268,
    "motion_blur": 78.5948,
    "zoom_blur": 79.836,
    "snow": 86.6816,
    "frost": 82.6572,
    "fog": 81.9324,
    "brightness": 56.4592,
    "contrast": 85.3204,
    "elastic_transform": 64.6056,
    "pixelate": 71.784,
    "jpeg_compression": 60.65,
}
"""Top-1 error in %, mean over severities; Hendrycks and Dietterich (ICLR 2019), with their program's digits."""
