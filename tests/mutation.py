"""How many mutants of the code the tests kill, by room: a random sample, run by mutmut in a copy of the checkout.

    python tests/mutation.py FOLDER [--room attention …] [--sample 200] [--seed 0]

FOLDER keeps the copies and what was found, so that the same command goes on where it was stopped. It writes
``mutants.csv`` (a row a room: mutants, sampled, killed, equivalent, the share killed of those that are not equivalent,
and its 95 % Wilson interval) and ``survivors.txt`` (what each one changes).

A mutant that no test can tell from the code is listed in ``equivalent_mutants.yaml``, with the reason. Mutants of one
sample that survive get tests; the share is then told by another ``--seed``, which those tests have not seen.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import random
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from kattn_cli.statistics.intervals import wilson_interval

ROOT = Path(__file__).resolve().parent.parent
EQUIVALENTS = Path(__file__).with_name("equivalent_mutants.yaml")
SETTINGS = """
[tool.mutmut]
source_paths = ["kattn_cli"]
only_mutate = {sources}
do_not_mutate = ["*/triton*.py"]
also_copy = ["recipes", "README.md", "Makefile", ".ci", "docs", "results", "constraints.txt"]
pytest_add_cli_args = ["-m", "not slow and not gpu and not reference", "-k", "not one_graph and not compiled_graph"]
pytest_add_cli_args_test_selection = {tests}
process_isolation = "forkserver"
timeout_constant = 60.0
timeout_multiplier = 4.0
use_git_change_detection = false
track_dependencies = false
"""
"""What runs on a GPU alone is not mutated; torch.compile cannot look through mutmut's switch between mutants."""
SURVIVED = (0, 5, 33)
"""mutmut's codes of a mutant that all tests of its function pass, and of one whose function no test calls."""


@dataclass(frozen=True)
class Room:
    """The files that are mutated, and the tests that must notice."""

    sources: tuple[str, ...]
    tests: tuple[str, ...]


ROOMS = {
    "attention": Room(("kattn_cli/attention/*",), ("tests/attention", "tests/kernels", "tests/costs/test_flops.py")),
    "kernels": Room(("kattn_cli/kernels/*",), ("tests/attention", "tests/kernels")),
    "attacks": Room(("kattn_cli/attacks/*",), ("tests/attacks",)),
    "statistics": Room(
        ("kattn_cli/statistics/*", "kattn_cli/tables/corruption_errors.py", "kattn_cli/tables/frames.py"),
        ("tests/statistics", "tests/tables"),
    ),
    "training": Room(("kattn_cli/training/*",), ("tests/training", "tests/data/test_text_windows.py")),
}


@dataclass(frozen=True)
class Mutant:
    """One change of the code: mutmut's name of it, and its exit code (None before it is run)."""

    name: str
    code: int | None

    @property
    def survived(self) -> bool:
        return self.code in SURVIVED


def prepare(room: Room, folder: Path) -> None:
    """Copy the checkout, and let mutmut write its mutants and learn which test calls which function."""
    if not (folder / "mutants" / "mutmut-stats.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        for name in listed.split("\0")[:-1]:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
        settings = SETTINGS.format(sources=json.dumps(room.sources), tests=json.dumps(room.tests))
        with (folder / "pyproject.toml").open("a", encoding="utf-8") as file:
            file.write(settings)
        mutmut(folder, "run", "nothing-of-this-name")
    if not list(mutants(folder)):
        raise SystemExit(f"{folder}: mutmut made no mutants; see {folder / 'mutmut.log'}")


def mutmut(folder: Path, *arguments: str) -> None:
    """Run mutmut in a copy; what it prints goes to ``mutmut.log``."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONPATH": ""}
    with (folder / "mutmut.log").open("a", encoding="utf-8") as log:
        subprocess.run(
            [sys.executable, "-m", "mutmut", *arguments], cwd=folder, env=environment, stdout=log, stderr=log
        )


def mutants(folder: Path) -> Iterator[Mutant]:
    """Yield all mutants of a copy, in the order of their names."""
    for path in sorted((folder / "mutants").rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        yield from (Mutant(name, codes[name]) for name in sorted(codes))


def sample(everything: Sequence[Mutant], count: int, seed: int) -> list[str]:
    """Return the names of ``count`` mutants drawn without replacement, the same for the same seed."""
    names = [one.name for one in everything]
    return random.Random(seed).sample(names, min(count, len(names)))


def run(folder: Path, names: Sequence[str]) -> list[Mutant]:
    """Return those mutants after the tests have run on each that had not been run before."""
    waiting = {one.name for one in mutants(folder) if one.code is None} & set(names)
    if waiting:
        mutmut(folder, "run", *sorted(waiting))
    found = [one for one in mutants(folder) if one.name in set(names)]
    if unknown := [one.name for one in found if one.code is None]:
        raise SystemExit(f"{folder}: {len(unknown)} mutants were not run; see {folder / 'mutmut.log'}")
    return found


def change(folder: Path, name: str) -> str:
    """Return what a mutant changes: the lines that go, and those that come, without their indentation."""
    shown = subprocess.run(
        [sys.executable, "-m", "mutmut", "show", name], cwd=folder, check=True, capture_output=True, text=True
    ).stdout
    lines = [line for line in shown.splitlines() if re.match(r"[+-](?![+-]{2})", line)]
    return "\n".join(f"{line[0]} {line[1:].strip()}" for line in lines)


def function_of(name: str) -> str:
    """Return ``kattn_cli.attention.primal.Primal.forward`` of mutmut's name of a mutant."""
    module, _, mangled = name.rpartition(".")
    plain = mangled.rpartition("__mutmut_")[0]
    method = plain.removeprefix("x_") if plain.startswith("x_") else plain.removeprefix("xǁ").replace("ǁ", ".")
    return f"{module}.{method}"


def equivalents() -> set[tuple[str, str]]:
    """Return the function and the change of every mutant known to be equivalent."""
    known = yaml.safe_load(EQUIVALENTS.read_text(encoding="utf-8")) or []
    return {(one["function"], one["change"].strip()) for one in known}


def judge(name: str, folder: Path, everything: int, found: Sequence[Mutant]) -> tuple[dict[str, object], list[str]]:
    """Return a room's row, and what each survivor that is not known to be equivalent changes."""
    known = equivalents()
    changes = {one.name: (function_of(one.name), change(folder, one.name)) for one in found if one.survived}
    equal = [one for one, what in changes.items() if what in known]
    survivors = [f"{one}\n{text}\n" for one, (_, text) in changes.items() if one not in equal]
    judged = len(found) - len(equal)
    killed = judged - len(survivors)
    low, high = wilson_interval(killed, judged)
    row = {"room": name, "mutants": everything, "sampled": len(found), "equivalent": len(equal), "killed": killed}
    return {
        **row,
        "share": round(100 * killed / judged, 1),
        "low": round(100 * low, 1),
        "high": round(100 * high, 1),
    }, survivors


def measure(name: str, folder: Path, count: int, seed: int) -> tuple[dict[str, object], list[str]]:
    """Return a room's row, and what each survivor of the sample changes that is not known to be equivalent."""
    prepare(ROOMS[name], folder)
    everything = list(mutants(folder))
    return judge(name, folder, len(everything), run(folder, sample(everything, count, seed)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--room", action="append", choices=ROOMS, help="one or several; all without it")
    parser.add_argument("--sample", type=int, default=200, help="mutants of each room")
    parser.add_argument("--seed", type=int, default=0)
    asked = parser.parse_args()
    rows, survivors = [], []
    for name in asked.room or ROOMS:
        row, left = measure(name, asked.folder.resolve() / name, asked.sample, asked.seed)
        rows.append({"seed": asked.seed, **row})
        survivors += left
        print(", ".join(f"{column} {value}" for column, value in row.items()), flush=True)
    with (asked.folder / "mutants.csv").open("w", newline="", encoding="utf-8") as file:
        table = csv.DictWriter(file, list(rows[0]))
        table.writeheader()
        table.writerows(rows)
    (asked.folder / "survivors.txt").write_text("\n".join(survivors), encoding="utf-8")


if __name__ == "__main__":
    main()
