"""Numbers of the authors' programs, and how a mechanism is held against them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

FOLDER = Path(__file__).parent / "vectors"
TOLERANCE = 1e-9

Vector = Mapping[str, Tensor]

BASELINE = {
    "qkv.weight": "qkv.weight",
    "qkv.bias": "qkv.bias",
    "proj.weight": "ff.weight",
    "proj.bias": "ff.bias",
}
"""Our parameters' names and those of the Primal authors' Long-Range Arena program, once Q, K and V are joined."""


def load(name: str) -> dict[str, Tensor]:
    """The arrays of one vector file; what is text (a version, a layout) is left out."""
    with np.load(FOLDER / f"{name}.npz", allow_pickle=False) as file:
        arrays = {key: np.array(file[key]) for key in file.files}
    return {key: torch.from_numpy(array) for key, array in arrays.items() if array.dtype.kind != "U"}


def load_baseline(name: str) -> dict[str, Tensor]:
    """A baseline of the Primal authors, whose parameters :data:`BASELINE` names, with Q, K and V joined."""
    vector = load(name)
    merge(vector, "qkv", "W_q", "W_k", "W_v")
    return vector


def names(prefix: str) -> list[str]:
    """The vector files whose name starts with ``prefix``."""
    found = sorted(path.stem for path in FOLDER.glob(f"{prefix}*.npz"))
    assert found, f"no vectors named {prefix}*"
    return found


def assert_equal(found: Tensor | None, expected: Tensor) -> None:
    """Within 1e-9, relative and absolute; no gradient counts as zero."""
    found = torch.zeros_like(expected) if found is None else found
    torch.testing.assert_close(found, expected, rtol=TOLERANCE, atol=TOLERANCE)


def fill(module: nn.Module, vector: Vector, theirs: Mapping[str, str]) -> nn.Module:
    """Copy parameters into ``module`` (made float64); ``theirs`` maps its parameters' names to the authors'."""
    shapes = {name: tensor.shape for name, tensor in module.state_dict().items()}
    module.double().load_state_dict({ours: vector[name].reshape(shapes[ours]) for ours, name in theirs.items()})
    return module


def merge(vector: dict[str, Tensor], into: str, *parts: str) -> None:
    """Join the authors' projections ``parts`` into one named ``into``: weights, biases and their gradients."""
    suffixes = [key.rpartition(".")[2] for key in vector if key.startswith(f"{parts[0]}.")]
    prefixes = {key.partition(parts[0])[0] for key in vector if f"{parts[0]}." in key}
    for prefix in prefixes:
        for suffix in suffixes:
            vector[f"{prefix}{into}.{suffix}"] = torch.cat([vector[f"{prefix}{part}.{suffix}"] for part in parts])


def check_outputs(module: nn.Module, vector: Vector) -> None:
    """Output and input gradient equal the vector's; padded where it has a mask."""
    x = vector["x"].clone().requires_grad_()
    out = module(x, vector["mask"].bool()) if "mask" in vector else module(x)
    assert_equal(out, vector["out"])
    (out * vector["cotangent"]).sum().backward()
    assert_equal(x.grad, vector["grad_x"])


def check_forward_backward(module: nn.Module, vector: Vector, theirs: Mapping[str, str]) -> None:
    """Output, input gradient and every parameter's gradient equal the vector's."""
    check_outputs(module, vector)
    check_gradients(module, vector, theirs, "gradparam")


def check_gradients(module: nn.Module, vector: Vector, theirs: Mapping[str, str], prefix: str) -> None:
    """Every parameter's gradient equals ``vector["<prefix>.<its name there>"]``."""
    for name, parameter in module.named_parameters():
        assert_equal(parameter.grad, vector[f"{prefix}.{theirs[name]}"].reshape(parameter.shape))
