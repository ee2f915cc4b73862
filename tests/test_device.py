"""Names of devices."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.device import resolve_device
from kattn_cli.errors import KattnError


def test_devices() -> None:
    assert resolve_device("cpu") == torch.device("cpu")
    assert resolve_device("auto").type in ("cpu", "cuda")


@pytest.mark.parametrize("name", ["gpu", "cpu:0:1", "cuda:x"])
def test_names_that_are_none(name: str) -> None:
    with pytest.raises(KattnError, match="expected auto, cpu, cuda or cuda:0"):
        resolve_device(name)


def test_a_device_that_is_not_here() -> None:
    count = torch.cuda.device_count()
    with pytest.raises(KattnError, match=f"this machine has {count} CUDA devices"):
        resolve_device(f"cuda:{count}")
