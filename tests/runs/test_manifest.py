"""Manifests that a hand or a disk has changed: what is wrong with them, in words."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kattn_cli.runs.manifest import read_manifest

SOUND: dict[str, Any] = {"name": "tiny", "seed": 0, "status": "finished", "overrides": ["train.lr=1"], "end": None}


def test_what_is_missing_or_null_may_be(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(SOUND), encoding="utf-8")
    assert read_manifest(path) == SOUND


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (json.dumps({**SOUND, "seed": "0"}), "it has no seed"),
        ("[1]", "it has no name and no seed and no status"),
        ("[" * 100_000, "it is nested too deeply"),
        (json.dumps({**SOUND, "overrides": 3}), "overrides is no list of texts"),
        (json.dumps({**SOUND, "overrides": [3]}), "overrides is no list of texts"),
        (json.dumps({**SOUND, "device": ["cpu"]}), "device is no text"),
        (json.dumps({**SOUND, "best_epoch": True}), "best_epoch is no number"),
        (json.dumps({**SOUND, "best_validation_top1": "97"}), "best_validation_top1 is no number"),
        (json.dumps({**SOUND, "measurements": [{}, {"machine": 4}]}), "measurements 2: machine is no mapping"),
    ],
)
def test_what_is_wrong(text: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match=f"^{fault}$"):
        read_manifest(path)
