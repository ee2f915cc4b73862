"""An attack costs one file and one card: it is then a flag, listed, measured, named, ordered, drawn and judged."""

from __future__ import annotations

import importlib
import shutil
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest
from command_line import kattn

import kattn_cli.commands.attack.cli
from kattn_cli.attacks import ATTACKS, Attack
from kattn_cli.runs.find import find_runs
from kattn_cli.tables.frames import attack_frame


@pytest.fixture
def dark(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The card of ``toy_attack.py``, in the registry when the command line is made."""
    monkeypatch.syspath_prepend(Path(__file__).parent)
    card = Attack("toy_attack", "darkness", norms=("linf",), epsilons=(8 / 255, 64 / 255), white_box=False)
    with monkeypatch.context() as patched:
        patched.setitem(ATTACKS, "dark", card)
        importlib.reload(kattn_cli.commands.attack.cli)
        yield
    importlib.reload(kattn_cli.commands.attack.cli)


@pytest.mark.usefixtures("dark")
def test_an_attack_is_one_file_and_one_card(trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    results = Path(shutil.copytree(trained, tmp_path / "results"))
    assert "Darkness (black-box)." in kattn(capfd, "attack", "--help").out
    assert "darkness" in kattn(capfd, "list", "attacks").out

    little = ("--limit", "40", "--device", "cpu", "--results", results)
    code, out, err = kattn(capfd, "attack", "tiny/0", "--dark", "--pgd", "--epsilon", "8/255", *little)
    assert code == 0, err
    assert [line.split()[0] for line in out.splitlines() if line.startswith(("pgd", "dark"))] == ["pgd", "dark"]
    assert "white-box ≤ black-box" in out
    table = attack_frame(find_runs(results, ["tiny/0"]))
    assert table["name"].tolist() == ["pgd 8/255", "dark 8/255"]
    checks = pd.read_csv(results / "tiny" / "0" / "attack_checks.csv").set_index("check")
    assert "dark" in checks.loc["white-box ≤ black-box", "evidence"]
    assert (results / "tiny" / "0" / "figures" / "robustness.png").exists()
