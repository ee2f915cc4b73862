"""A mechanism in the user's own file: ``my_file.py:MyAttention``."""

from __future__ import annotations

import importlib.util
import os
import sys
import traceback
from pathlib import Path

from torch import nn

from kattn_cli.errors import RecipeError, did_you_mean


def names_a_file(name: str) -> bool:
    """Return whether ``name`` is of the form ``file.py:Class``."""
    return ".py:" in name


def load_class(name: str) -> type[nn.Module]:
    """Import ``file.py:Class``; the path is relative to the current folder.

    Raises:
        RecipeError: if the file is missing or fails to import, or the class is missing or not a module.
    """
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
    try:
        spec.loader.exec_module(module)
    except Exception as error:
        raise RecipeError(f"{path} cannot be imported: {type(error).__name__}: {error}") from error
    classes = {
        key: value for key, value in vars(module).items() if isinstance(value, type) and issubclass(value, nn.Module)
    }
    if attribute not in classes:
        raise RecipeError(f"{path} has no nn.Module named {attribute}{did_you_mean(attribute, classes)}")
    return classes[attribute]


def one_line(error: Exception) -> str:
    """Return an error of a user's code in one line, with the place in a file where it arose."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {error} ({Path(last.filename).name}, line {last.lineno})"
