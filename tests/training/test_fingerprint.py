"""The fingerprint of a file of weights."""

from __future__ import annotations

import hashlib
from pathlib import Path

from kattn_cli.runs.weights import fingerprint


def test_it_is_the_beginning_of_the_sum_of_the_file(tmp_path: Path) -> None:
    content = bytes(range(256)) * 5000
    path = tmp_path / "best.safetensors"
    path.write_bytes(content)
    assert fingerprint(path) == hashlib.sha256(content).hexdigest()[:12]


def test_the_file_before_it_stands_in_for_one_that_is_missing(tmp_path: Path) -> None:
    (tmp_path / "best.previous.safetensors").write_bytes(b"abc")
    assert fingerprint(tmp_path / "best.safetensors") == "ba7816bf8f01"
