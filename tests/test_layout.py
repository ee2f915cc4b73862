"""Imports point down only, and what answers at once does not wait for torch."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from report.runs import write_all

import kattn_cli
from kattn_cli.runs.run import FORWARD_FLOPS

PACKAGE = Path(kattn_cli.__file__).parent


def test_imports_keep_the_contract() -> None:
    """As ``pyproject.toml`` draws it: layers that import downwards only, and rooms that do without torch."""
    tool = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([tool, "--no-cache"], cwd=PACKAGE.parent, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


def loaded_by(code: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", f"{code}\nimport sys; print(*sys.modules)"], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import io, contextlib, sys\nsys.argv = ['kattn', '--help']\nfrom kattn_cli.cli import app\n"
        "with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):\n    app()"
    )
    heavy = {"torch", "timm", "pandas", "numpy", "matplotlib", "pydantic", "yaml", "sklearn"}
    assert not heavy & loaded_by(code)


def test_no_command_shows_the_help() -> None:
    done = subprocess.run([sys.executable, "-m", "kattn_cli"], capture_output=True, text=True, check=False)
    assert "Usage:" in done.stdout + done.stderr
    assert "Begin with:" in done.stdout + done.stderr


def test_recipes_results_and_figures_do_not_import_torch() -> None:
    code = "import kattn_cli.recipe.schema, kattn_cli.runs.run, kattn_cli.commands.plot.plot"
    assert "torch" not in loaded_by(code)


def test_a_report_of_runs_that_say_their_operations_imports_no_torch(tmp_path: Path) -> None:
    """Nor what draws, where nothing is drawn."""
    facts = {FORWARD_FLOPS: 2_500_000}
    write_all(tmp_path / "runs", {"a/softmax": (80.0, 81.0, 79.0), "a/tssa": (90.0, 91.0, 89.5)}, **facts)
    arguments = ["kattn", "report", "--no-figures", "--quiet", "--results", str(tmp_path / "runs")]
    code = f"import sys\nsys.argv = {arguments!r}\nfrom kattn_cli.cli import app\napp(standalone_mode=False)"
    assert not {"torch", "timm", "matplotlib"} & loaded_by(code)
    assert "2.5" in (tmp_path / "runs" / "report" / "tables" / "a-digits-cost.tex").read_text()
