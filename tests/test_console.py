"""What is printed is what was given, whatever a path or a name has in it."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from command_line import kattn
from rich.console import Console

from kattn_cli import console as module
from kattn_cli.commands.options import next_arguments
from kattn_cli.console import console, print_wide, progress_bar

NAME = "out[/b] [red]x[/red] :on: [link=file:///etc]"


def test_names_are_printed_as_they_are(capsys: pytest.CaptureFixture[str]) -> None:
    console.print(NAME)
    print_wide(["run", NAME], [[NAME, "1"]])
    assert capsys.readouterr().out.count(NAME) == 3


def test_a_bar_shows_names_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    markup, emoji = console._markup, console._emoji
    terminal = Console(record=True, force_terminal=True, width=300, highlight=False, markup=markup, emoji=emoji)
    monkeypatch.setattr(module, "console", terminal)
    with progress_bar(NAME) as bar:
        bar.add_task(NAME, total=2, count="1/2", note=NAME)
        bar.refresh()
    assert terminal.export_text().count(NAME) >= 3


def test_the_next_command_can_be_typed(tiny_recipe: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = tmp_path / "out[/b] of mine"
    said = kattn(capfd, "train", tiny_recipe, "train.epochs=1", "--results", results)
    assert said.code == 0, said.err
    *_, best, following = said.out.splitlines()
    assert best.startswith(f"{results / 'tiny' / '0'}: best ")
    words = shlex.split(following.removeprefix("Next: "))
    assert words[:3] == ["kattn", "attack", "tiny"]
    assert str(results) in words


def test_the_usual_folder_is_not_named() -> None:
    assert next_arguments(["a", "b c"], Path("results")) == "a 'b c'"
    assert next_arguments(["a"], Path("r s")) == "a --results 'r s'"
