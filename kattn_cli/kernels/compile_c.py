"""Compile ``kernels.c``, and the operators' headers that it includes, for this machine, once, and load them.

The library is kept in the user's cache folder, named after everything it depends on, until nobody used it for a month
(:mod:`kattn_cli.cache`). Where there is no compiler, or
it fails, :func:`available` is False, and operators compute with torch's operations.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
import warnings
from functools import cache
from pathlib import Path

import torch

from kattn_cli.cache import hold, sweep

SOURCES = Path(__file__).parent
FLAGS = ("-O3", "-march=native", "-std=c11", "-fPIC", "-shared", "-fno-math-errno", "-fno-trapping-math")
REASSOCIATE = ("-fassociative-math", "-fno-signed-zeros", "-freciprocal-math")
"""Sums in any order, so that they vectorise; infinities and what is not a number are kept."""
THREADS = ("-fopenmp",)
"""Left out where the compiler does not know it: one thread then computes."""


@torch.compiler.assume_constant_result
def available() -> bool:
    """Return whether the kernels can be used; the first call compiles them, which takes about a second."""
    return _library() is not None


def function(name: str) -> ctypes._NamedFuncPointer:
    """Return a function of the compiled library.

    Raises:
        RuntimeError: if there is no library; ask :func:`available` first.
    """
    library = _library()
    if library is None:
        raise RuntimeError("the C kernels could not be compiled here")
    return library[name]


@cache
def _library() -> ctypes.CDLL | None:
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        return None
    message = ""
    for threads in (THREADS, ()):
        try:
            path = _compiled(compiler, threads)
            hold(path)  # until this process ends, as it uses the library
            return ctypes.CDLL(str(path))
        except (OSError, subprocess.SubprocessError) as error:
            message = error.stderr.strip() if isinstance(error, subprocess.CalledProcessError) else str(error)
    warnings.warn(f"the C kernels could not be compiled, torch's operations are used: {message}", stacklevel=2)
    return None


def _compiled(compiler: str, threads: tuple[str, ...] = THREADS) -> Path:
    command = [*compiler.split(), *FLAGS, *REASSOCIATE, *threads]
    version = subprocess.run([*compiler.split(), "--version"], capture_output=True, text=True, check=True).stdout
    texts = [path.read_text(encoding="utf-8") for path in sorted(SOURCES.rglob("*.[ch]"))]
    name = hashlib.sha256("\0".join([*texts, *command, version, _processor()]).encode()).hexdigest()[:16]
    path = cache_folder() / f"kernels-{name}.so"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent) as folder:
            fresh = Path(folder) / path.name
            run = [*command, str(SOURCES / "kernels.c"), "-lm", "-o", str(fresh)]
            subprocess.run(run, capture_output=True, text=True, check=True, timeout=300)
            fresh.replace(path)
        sweep(path.parent, "kernels-*.so")
    return path


def cache_folder() -> Path:
    """Return where compiled libraries are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "kattn"


def _processor() -> str:
    """Return what ``-march=native`` depends on, as text."""
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.platform() + platform.processor()
    return "\n".join(sorted({line for line in lines if line.startswith(("model name", "flags", "Features"))}))
