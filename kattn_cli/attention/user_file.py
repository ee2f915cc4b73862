"""A mechanism in the user's own file: ``my_file.py:MyAttention``."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from kattn_cli.errors import KattnError, RecipeError, Stopped, did_you_mean

if TYPE_CHECKING:
    from torch import nn

_imported: set[str] = set()
"""The files of users that were imported, as tracebacks name them."""


def names_a_file(name: str) -> bool:
    """Return whether ``name`` is of the form ``file.py:Class``."""
    return ".py:" in name


def load_class(name: str) -> type[nn.Module]:
    """Import ``file.py:Class``; the path is relative to the current folder.

    Raises:
        RecipeError: if the file is missing or fails to import, or the class is missing or not a module.
    """
    from torch import nn

    file, _, attribute = name.rpartition(":")
    path = Path(os.path.realpath(Path(file).expanduser()))
    if not path.is_file():
        raise RecipeError(f"there is no file {path}")
    module_name = f"kattn_user_{path.stem}"
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None or spec.loader is None:
        raise RecipeError(f"{path} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    _imported.add(str(path))
    try:
        spec.loader.exec_module(module)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # also sys.exit, which would end kattn as if all were well
        raise RecipeError(f"{path} cannot be imported: {one_line(error)}") from error
    classes = {
        key: value for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, nn.Module)
    }
    if attribute not in classes:
        raise RecipeError(f"{path} has no nn.Module named {attribute}{did_you_mean(attribute, classes)}")
    return classes[attribute]


def one_line(error: BaseException) -> str:
    """Return the first line of an error of a user's code, with the place in the user's file where it arose."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename in _imported]
    last = (own or frames)[-1]
    place = "" if isinstance(error, SyntaxError) else f" ({Path(last.filename).name}, line {last.lineno})"
    first, *others = str(error).splitlines() or [""]
    return f"{_named(error, first)}{' …' if others else ''}{place}"


def _named(error: BaseException, text: str) -> str:
    return f"{type(error).__name__}: {text}".removesuffix(": ")


@contextmanager
def faults_of_user_files() -> Iterator[None]:
    """Turn whatever a user's file raises, ``sys.exit`` too, into one line that names the file and the line.

    Raises:
        RecipeError: in place of an error whose traceback goes through a user's file. Others pass.
    """
    try:
        yield
    except (KattnError, Stopped, KeyboardInterrupt):
        raise
    except BaseException as error:
        own = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in _imported]
        if not own:
            raise
        callers = "".join(f", called in line {frame.lineno}, in {frame.name}" for frame in reversed(own[:-1]))
        place = f"{own[-1].filename}, line {own[-1].lineno}, in {own[-1].name}{callers}"
        raise RecipeError(f"{place}: {_named(error, ' '.join(str(error).split()))}") from error
