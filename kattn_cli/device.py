"""The device a command runs on."""

from __future__ import annotations

import torch

from kattn_cli.errors import KattnError


def resolve_device(name: str) -> torch.device:
    """Return the device that ``auto`` (the GPU if there is one), ``cpu``, ``cuda`` or ``cuda:1`` means.

    Raises:
        KattnError: if the name is none of these, or that device is not here.
    """
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    kind, _, index = name.partition(":")
    if name != "cpu" and (kind != "cuda" or (index and not index.isdigit())):
        raise KattnError(f"--device {name}: expected auto, cpu, cuda or cuda:0, cuda:1, …")
    if kind == "cuda" and int(index or 0) >= torch.cuda.device_count():
        raise KattnError(f"--device {name}: this machine has {torch.cuda.device_count()} CUDA devices")
    return torch.device(name)


def synchronise(device: torch.device) -> None:
    """Wait until a GPU has done what it was asked to."""
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def device_name(device: torch.device) -> str:
    """Return ``cpu``, or ``cuda:0 (NVIDIA …)``."""
    return f"{device} ({torch.cuda.get_device_name(device)})" if device.type == "cuda" else str(device)
