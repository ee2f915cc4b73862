"""An item of the audit costs one file and one line: ``kattn audit`` then measures it and ``kattn plot`` draws it."""

from __future__ import annotations

import shutil
from pathlib import Path
from pkgutil import resolve_name

import pandas as pd
import pytest
from command_line import kattn

from kattn_cli.audit.items import ITEMS, Item


def test_an_item_is_one_file_and_one_line(
    trained: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(Path(__file__).parent)
    item = Item("chosen", "toy_item:norms", draw=resolve_name("toy_item:draw_norms"))
    monkeypatch.setitem(ITEMS, "norms", item)
    results = Path(shutil.copytree(trained, tmp_path / "results"))
    code, out, err = kattn(capfd, "audit", "tiny/0", "--only", "norms", "--inputs", 4, "--results", results)
    assert code == 0, err
    assert "audit: norms" in out
    rows = pd.read_csv(results / "tiny" / "0" / "audit" / "norms.csv")
    assert rows["norm"].gt(0).all()
    assert rows["checkpoint"].unique().tolist() == ["last"]

    figures = results / "tiny" / "0" / "figures"
    (figures / "norms.png").unlink()
    code, out, err = kattn(capfd, "plot", "tiny/0", "--results", results)
    assert code == 0, err
    assert (figures / "norms.png").stat().st_size > 1000
