"""The C kernels are compiled once, and where they cannot be, torch's operations take their place."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kattn_cli.kernels import choice
from kattn_cli.kernels import compile_c as build

needs_compiler = pytest.mark.skipif(not build.available(), reason="no C compiler here")


@needs_compiler
def test_compiled_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    compiler = os.environ.get("CC", "cc")
    first = build._compiled(compiler)
    before = first.stat().st_mtime_ns
    assert build._compiled(compiler) == first
    assert first.stat().st_mtime_ns == before
    assert [path.name for path in (tmp_path / "kattn").iterdir()] == [first.name]


def test_without_a_compiler_torch_computes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "_library", lambda: None)
    assert not choice.kernel_for(torch.zeros(choice.SMALL))
    with pytest.raises(RuntimeError, match="could not be compiled"):
        build.function("tssa_norms_float")


@needs_compiler
@pytest.mark.skipif(sys.platform == "win32", reason="the system runs no shell scripts")
def test_a_compiler_that_fails_is_told_once(tmp_path: Path) -> None:
    broken = tmp_path / "cc"
    broken.write_text('#!/bin/sh\n[ "$1" = --version ] && exit 0\necho "no such option" >&2\nexit 1\n')
    broken.chmod(broken.stat().st_mode | stat.S_IXUSR)
    assert asked_twice(broken, tmp_path).count("torch's operations are used: no such option") == 1


@pytest.mark.skipif(sys.platform == "win32", reason="the system runs no shell scripts")
def test_a_compiler_that_does_not_know_its_version_is_none(tmp_path: Path) -> None:
    """It would give two machines' libraries one name."""
    unversioned = tmp_path / "cc"
    unversioned.write_text('#!/bin/sh\n[ "$1" = --version ] || exec cc "$@"\necho "who asks?" >&2\nexit 1\n')
    unversioned.chmod(unversioned.stat().st_mode | stat.S_IXUSR)
    assert asked_twice(unversioned, tmp_path).count("torch's operations are used: who asks?") == 1


def asked_twice(compiler: Path, folder: Path) -> str:
    """What a process says that asks this compiler for the kernels twice, and does not get them."""
    code = "from kattn_cli.kernels import compile_c as build; print(build.available(), build.available())"
    environment = {**os.environ, "CC": str(compiler), "XDG_CACHE_HOME": str(folder / "cache")}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "False False\n"
    return done.stderr


def test_small_tensors_are_left_to_torch() -> None:
    assert not choice.kernel_for(torch.zeros(choice.SMALL - 1))
    assert choice.kernel_for(torch.zeros(choice.SMALL)) == build.available()
    with choice.operators("plain"):
        assert not choice.kernel_for(torch.zeros(choice.SMALL))


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("processor\t: 0\nmodel name\t: A\nflags\t: sse avx\ncpu MHz\t: 1\n", "flags\t: sse avx\nmodel name\t: A"),
        ("processor\t: 0\nFeatures\t: asimd\nprocessor\t: 1\nFeatures\t: asimd\n", "Features\t: asimd"),
    ],
    ids=["x86", "ARM"],
)
def test_what_a_library_is_made_for(monkeypatch: pytest.MonkeyPatch, lines: str, expected: str) -> None:
    """What is another from boot to boot or from core to core does not count."""
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: lines)
    assert build._processor() == expected
