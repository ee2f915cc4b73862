"""The fingerprint of a file of weights."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from kattn_cli.runs.weights import fingerprint

WEIGHTS = {"b": torch.arange(6.0).reshape(2, 3), "a": torch.ones(3, dtype=torch.bfloat16)}


def written(path: Path, tensors: dict[str, Tensor], **facts: str) -> str:
    """The fingerprint of a file with these tensors and facts."""
    save_file(tensors, path, metadata=facts)
    return fingerprint(path)


def test_equal_weights_have_equal_fingerprints_whatever_the_order_of_the_files_facts(tmp_path: Path) -> None:
    """As safetensors writes it, which is at random."""
    path = tmp_path / "best.safetensors"
    first = written(path, WEIGHTS, step="5", recipe="{}")
    whole = path.read_bytes()
    length = int.from_bytes(whole[:8], "little")
    header = json.loads(whole[8 : 8 + length])
    turned = json.dumps({name: header[name] for name in reversed(header)}).encode()
    path.write_bytes(len(turned).to_bytes(8, "little") + turned + whole[8 + length :])
    assert fingerprint(path) == first
    assert written(tmp_path / "other.safetensors", dict(reversed(WEIGHTS.items())), step="6") == first


def test_it_is_of_names_types_shapes_and_bytes(tmp_path: Path) -> None:
    b, a = WEIGHTS["b"], WEIGHTS["a"]
    other = [
        {"b": b, "c": a},
        {"b": b.reshape(3, 2), "a": a},
        {"b": b, "a": a.view(torch.float16)},
        {"b": b + torch.tensor([[0, 0, 0], [0, 0, 1e-6]]), "a": a},
        {"b": b},
    ]
    found = {written(tmp_path / f"{k}.safetensors", one) for k, one in enumerate((WEIGHTS, *other))}
    assert len(found) == 6
    assert all(len(one) == 12 and int(one, 16) >= 0 for one in found)


@pytest.mark.parametrize("content", [bytes(range(256)) * 5000, b"", b"\2\0\0\0\0\0\0\0[]", b"abc"])
def test_of_another_kind_of_file_it_is_the_sum_of_its_bytes(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "best.safetensors"
    path.write_bytes(content)
    assert fingerprint(path) == hashlib.sha256(content).hexdigest()[:12]


def test_a_file_that_takes_its_name_has_its_own(tmp_path: Path) -> None:
    """Also in the same instant and of the same size."""
    path = tmp_path / "best.safetensors"
    found = {written(path, WEIGHTS)}
    save_file({**WEIGHTS, "a": WEIGHTS["a"] + 1}, tmp_path / "new", {})
    os.utime(tmp_path / "new", ns=(0, path.stat().st_mtime_ns))
    os.replace(tmp_path / "new", path)
    assert fingerprint(path) not in found


def test_a_file_that_is_cut_short_has_another(tmp_path: Path) -> None:
    path = tmp_path / "best.safetensors"
    whole = written(path, WEIGHTS)
    path.write_bytes(path.read_bytes()[:-2])
    assert fingerprint(path) == hashlib.sha256(path.read_bytes()).hexdigest()[:12] != whole
