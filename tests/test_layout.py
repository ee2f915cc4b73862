"""Imports point down only, and what answers at once does not wait for torch."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import kattn_cli

PACKAGE = Path(kattn_cli.__file__).parent

ABOVE = {
    "errors": ["strict_yaml", "recipe", "results", "provenance", "kernels", "attention", "models", "data"],
    "strict_yaml": ["recipe", "results", "attention", "models", "data", "training", "commands"],
    "recipe_model": ["recipe", "results", "attention", "models", "data", "training", "commands"],
    "recipe": ["results", "attention", "models", "data", "training", "attacks", "analysis", "commands"],
    "results": ["recipe", "attention", "models", "data", "training", "attacks", "analysis", "commands"],
    "kernels": ["attention", "models", "data", "training", "attacks", "analysis", "commands", "recipe", "results"],
    "attention": ["models", "data", "training", "attacks", "analysis", "commands", "recipe", "results"],
    "models": ["training", "attacks", "analysis", "commands", "results"],
    "data": ["models", "training", "attacks", "analysis", "commands", "results"],
    "attacks": ["models", "training", "analysis", "commands", "recipe", "results"],
    "analysis": ["models", "training", "attacks", "commands", "recipe", "results"],
    "training": ["attacks", "commands", "results"],
    "papers": ["recipe", "results", "figures", "claims", "attention", "models", "data", "training", "commands"],
    "plan": [
        "recipe",
        "results",
        "figures",
        "attention",
        "models",
        "data",
        "training",
        "attacks",
        "analysis",
        "commands",
    ],
    "figures": ["attention", "models", "data", "training", "attacks", "claims", "commands"],
    "lock": ["recipe", "results", "attention", "models", "data", "training", "commands"],
    "recipe_grid": ["recipe", "results", "attention", "models", "data", "training", "commands"],
    "recipe_sweep": ["results", "attention", "models", "data", "training", "commands"],
    "executors": ["recipe", "results", "attention", "models", "data", "attacks", "analysis", "figures", "commands"],
    "report": ["attention", "kernels", "models", "data", "training", "attacks", "commands"],
    "claims": ["attention", "kernels", "models", "data", "training", "attacks", "commands"],
}
WITHOUT_TORCH = [
    "errors",
    "strict_yaml",
    "recipe",
    "recipe_model",
    "recipe_faults",
    "recipe_files",
    "results",
    "provenance",
    "options",
    "recipe_data",
    "recipe_train",
    "whole_file",
]
WITHOUT_TORCH += [
    "figures",
    "papers",
    "plan",
    "claims",
    "report",
    "cli",
    "cli_attack",
    "cli_audit",
    "cli_data",
    "cli_eval",
    "cli_generate",
    "cli_kernel_pca",
]
WITHOUT_TORCH += ["lock", "recipe_grid", "recipe_sweep", "executors", "cli_sweep"]
WITHOUT_TORCH += [
    "cli_benchmark",
    "cli_complexity",
    "cli_options",
    "cli_plot",
    "cli_report",
    "cli_reproduce",
    "cli_spectrum",
]


def files(room: str) -> list[Path]:
    single = PACKAGE / f"{room}.py"
    return [single] if single.exists() else sorted((PACKAGE / room).rglob("*.py"))


def imported(path: Path) -> set[str]:
    """Modules imported at the top of a file, but for those only a type checker sees."""
    names: set[str] = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("room", ABOVE)
def test_imports_point_down(room: str) -> None:
    for path in files(room):
        for above in ABOVE[room]:
            assert not any(f"{name}.".startswith(f"kattn_cli.{above}.") for name in imported(path)), (path, above)


@pytest.mark.parametrize("room", WITHOUT_TORCH)
def test_rooms_without_torch(room: str) -> None:
    for path in files(room):
        assert not {"torch", "timm"} & {name.partition(".")[0] for name in imported(path)}, path


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
    code = "import kattn_cli.recipe, kattn_cli.results, kattn_cli.commands.plot"
    assert "torch" not in loaded_by(code)
