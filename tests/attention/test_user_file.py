"""A mechanism in the user's own file: found, or refused in one line."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from torch import nn

from kattn_cli.attention.options import build_attention
from kattn_cli.attention.user_file import faults_of_user_files, load_class, names_a_file, one_line
from kattn_cli.errors import RecipeError, Stopped

CODE = """\
from torch import nn

SIZE = 3

class Mean(nn.Module):
    size = SIZE

class Helper:
    pass
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(CODE, encoding="utf-8")
    return path


def refused(name: str) -> str:
    with pytest.raises(RecipeError) as caught:
        load_class(name)
    return str(caught.value)


def test_what_names_a_file() -> None:
    assert names_a_file("folder/mine.py:Mean")
    assert not any(map(names_a_file, ("softmax", "mine.py", "mine:Mean")))


def test_the_class_of_the_file(mine: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = load_class(f"{mine}:Mean")
    assert issubclass(found, nn.Module)
    assert (found.__name__, found.__module__, vars(found)["size"]) == ("Mean", "kattn_user_mine", 3)
    monkeypatch.chdir(mine.parent)
    assert load_class("mine.py:Mean").__name__ == "Mean"


@pytest.mark.parametrize("name", ["Meen", "Helper", "SIZE", "nothing"])
def test_no_module_of_that_name(mine: Path, name: str) -> None:
    hint = '; did you mean "Mean"?' if name == "Meen" else ""
    assert refused(f"{mine}:{name}") == f"{mine} has no nn.Module named {name}{hint}"


def test_no_such_file_and_none_that_can_be_imported(tmp_path: Path) -> None:
    assert refused(f"{tmp_path}/gone.py:Mean") == f"there is no file {tmp_path}/gone.py"
    broken = tmp_path / "broken.py"
    broken.write_text("x = 1 / 0\n", encoding="utf-8")
    assert (
        refused(f"{broken}:Mean")
        == f"{broken} cannot be imported: ZeroDivisionError: division by zero (broken.py, line 1)"
    )
    text = tmp_path / "mine.txt"
    text.write_text(CODE, encoding="utf-8")
    assert refused(f"{text}:Mean") == f"{text} is not a Python file"


def test_a_constructor_that_fails(mine: Path) -> None:
    mine.write_text(
        "from torch import nn\n\nclass Mean(nn.Module):\n"
        "    def __init__(self, dim, heads, *, seq_len, causal=False, refused=False):\n"
        "        raise ValueError('no') if refused else KeyError('dim')\n",
        encoding="utf-8",
    )
    for options, text in (({"refused": True}, "no"), ({}, "KeyError: 'dim' (mine.py, line 5)")):
        with pytest.raises(RecipeError) as caught:
            build_attention(f"{mine}:Mean", options, dim=8, heads=2, seq_len=4)
        assert str(caught.value) == f"attention {mine}:Mean: {text}"


def test_where_a_fault_of_the_users_code_arose(mine: Path) -> None:
    mine.write_text(CODE + "\ndef fail():\n    raise ValueError('too short')\nSIZE = fail\n", encoding="utf-8")
    load_class(f"{mine}:Mean")
    with pytest.raises(ValueError, match="too short") as caught:
        sys.modules["kattn_user_mine"].fail()
    assert one_line(caught.value) == "ValueError: too short (mine.py, line 12)"


@pytest.mark.parametrize("code", ["import sys\nsys.exit(0)\n", "class Own(BaseException): ...\nraise Own\n"])
def test_a_file_that_ends_the_process_when_it_is_imported(tmp_path: Path, code: str) -> None:
    path = tmp_path / "ends.py"
    path.write_text(code, encoding="utf-8")
    error = "SystemExit: 0" if "sys" in code else "Own"
    assert refused(f"{path}:Mean") == f"{path} cannot be imported: {error} (ends.py, line 2)"
    path.write_text("x = (\n", encoding="utf-8")
    assert refused(f"{path}:Mean") == f"{path} cannot be imported: SyntaxError: '(' was never closed (ends.py, line 1)"


def test_a_constructor_that_ends_the_process(mine: Path) -> None:
    init = "    def __init__(self, dim, heads, *, seq_len, causal=False):\n        raise SystemExit\n"
    mine.write_text(f"from torch import nn\n\nclass Mean(nn.Module):\n{init}", encoding="utf-8")
    with pytest.raises(RecipeError, match=r": SystemExit \(mine.py, line 5\)$"):
        build_attention(f"{mine}:Mean", {}, dim=8, heads=2, seq_len=4)


RAISES = """
def fail(error):
    raise error

def call(error):
    fail(error)

SIZE = call
"""


@pytest.mark.parametrize("error", [SystemExit(0), ValueError("two\nlines"), BaseException()])
def test_whatever_it_raises_later_is_one_line(mine: Path, error: BaseException) -> None:
    mine.write_text(CODE + RAISES, encoding="utf-8")
    load_class(f"{mine}:Mean")
    with pytest.raises(RecipeError) as caught, faults_of_user_files():
        sys.modules["kattn_user_mine"].call(error)
    text = {SystemExit: "SystemExit: 0", ValueError: "ValueError: two lines", BaseException: "BaseException"}
    assert str(caught.value) == f"{mine}, line 12, in fail, called in line 15, in call: {text[type(error)]}"


def test_what_is_not_its_fault_passes(mine: Path) -> None:
    load_class(f"{mine}:Mean")
    with pytest.raises(SystemExit), faults_of_user_files():
        sys.exit(3)
    mine.write_text(CODE + RAISES, encoding="utf-8")
    load_class(f"{mine}:Mean")
    for error in (KeyboardInterrupt, Stopped("stopped"), RecipeError("a fault")):
        with pytest.raises(error if isinstance(error, type) else type(error)) as caught, faults_of_user_files():
            sys.modules["kattn_user_mine"].call(error)
        assert ", line " not in str(caught.value)
