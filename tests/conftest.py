"""Shared by all tests: one thread, so that parallel workers do not fight, one seed, and a small trained run."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import matplotlib
import pytest
import torch
from no_skips import pytest_addoption, pytest_make_collect_report, pytest_runtest_makereport  # noqa: F401

from kattn_cli.console import console
from kattn_cli.data.reading import network
from kattn_cli.figures import style
from kattn_cli.kernels import choice

torch.set_num_threads(1)

TINY = """\
name: tiny
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}
attention: {name: symmetric, layers: {0: {name: rpc, iterations: 2}}}
train: {epochs: 2, batch_size: 256, lr: 5e-3}
"""


@pytest.fixture(autouse=True)
def _seed() -> None:
    """Every test draws the same numbers, alone or among others."""
    torch.manual_seed(0)


@pytest.fixture(autouse=True)
def _heard(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test is silenced by a quiet command of another."""
    monkeypatch.setattr(console, "quiet", False)


@pytest.fixture(scope="session", autouse=True)
def _caches_are_the_tests_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The user's caches are left alone; the tests of all workers share one, so that kernels are compiled once."""
    base = tmp_path_factory.getbasetemp()
    shared = base.parent if "PYTEST_XDIST_WORKER" in os.environ else base
    with pytest.MonkeyPatch.context() as patch:
        # Matplotlib's list of fonts takes seconds to make: it is read from where it is.
        patch.setenv("MPLCONFIGDIR", matplotlib.get_cachedir())
        patch.setenv("XDG_CACHE_HOME", str(shared / "caches"))
        patch.setenv("KATTN_DATA", str(shared / "data"))
        yield


@pytest.fixture(autouse=True)
def _no_network(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks whether there is a network."""
    monkeypatch.setattr(network, "unreachable", lambda url: "")


@pytest.fixture(autouse=True)
def _usual_look() -> None:
    """Figures as a fresh process draws them, whatever the test before asked for."""
    style.use()


@pytest.fixture(params=["plain", "fast"])
def each_version(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """By torch's operations, then by kernels whatever the size."""
    monkeypatch.setattr(choice, "SMALL", 0)
    with choice.operators(request.param):
        yield request.param


@pytest.fixture
def tiny_recipe(tmp_path: Path) -> Path:
    """A recipe that trains in a second."""
    path = tmp_path / "tiny.yaml"
    path.write_text(TINY, encoding="utf-8")
    return path


@pytest.fixture(scope="session")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A results folder with one finished run of the tiny recipe, ``tiny/0``. Not to be changed."""
    from kattn_cli.commands.train.train import train

    folder = tmp_path_factory.mktemp("trained")
    recipe = folder / "tiny.yaml"
    recipe.write_text(TINY, encoding="utf-8")
    train([str(recipe)], [], [], results=folder / "results", device=torch.device("cpu"))
    return folder / "results"
