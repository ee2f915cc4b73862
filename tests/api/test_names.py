"""The public names: which there are, that importing loads nothing heavy, and that no room hides one."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

import kattn_cli as kattn

PUBLIC = (
    "Attention", "KattnError", "Run", "attack", "audit", "compare", "complexity", "evaluate", "runs", "spectrum",
    "swap", "train",
)  # fmt: skip


def test_the_names_are_these_and_no_other() -> None:
    assert tuple(kattn.__all__) == PUBLIC
    assert dir(kattn) == sorted([*PUBLIC, "__version__"])


@pytest.mark.parametrize("name", PUBLIC)
def test_each_says_what_it_does(name: str) -> None:
    found = getattr(kattn, name)
    assert callable(found)
    assert inspect.getdoc(found)


def test_importing_loads_nothing_heavy() -> None:
    code = "import sys, kattn_cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "numpy", "pandas", "pydantic", "typer"} & set(loaded)


@pytest.mark.parametrize("name", ["runs", "audit"])
def test_a_room_of_the_same_name_hides_no_function(name: str) -> None:
    code = f"import kattn_cli.{name}, kattn_cli as kattn; kattn.{name}('nowhere', results='/nowhere')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.splitlines()[-1].startswith("kattn_cli.errors.RunError: nowhere: no such run")


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'kattn_cli' has no attribute 'evalute'"):
        getattr(kattn, "evalute")  # noqa: B009
