"""Warnings of MuJoCo."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("mujoco")

import mujoco

from kattn_cli.environments import make as physics

FALLING = """
<mujoco><worldbody><body pos="0 0 1"><freejoint/><geom size="0.1"/></body></worldbody></mujoco>
"""


def test_each_is_told_once_and_leaves_no_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A body at a position that is no number."""
    monkeypatch.chdir(tmp_path)
    physics._tell.cache_clear()
    physics.warn_once()
    model = mujoco.MjModel.from_xml_string(FALLING)
    for _ in range(3):
        data = mujoco.MjData(model)
        data.qpos[0] = float("nan")
        mujoco.mj_step(model, data)
    (told,) = capfd.readouterr().err.splitlines()
    assert told.startswith("MuJoCo: Nan, Inf or huge value in QPOS")
    assert not list(tmp_path.iterdir())


def test_without_mujoco_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(physics, "find_spec", lambda name: None)
    physics.warn_once()
