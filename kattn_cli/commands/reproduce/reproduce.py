"""``kattn reproduce``: train and measure what stands behind a table of the papers, and lay ours beside theirs."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from pathlib import Path

from kattn_cli.commands.subcommand import call
from kattn_cli.console import console
from kattn_cli.errors import KattnError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.resume import find_unfinished
from kattn_cli.papers import PAPERS
from kattn_cli.papers.beside import beside
from kattn_cli.papers.plan import Measurement, Plan, Size, SizeName
from kattn_cli.papers.text import as_markdown, print_sections, sections
from kattn_cli.papers.values import measured
from kattn_cli.recipe.schema import Recipe, per_seed
from kattn_cli.runs.csv_rows import changing
from kattn_cli.runs.run import Run
from kattn_cli.runs.whole_file import write_text
from kattn_cli.tables.summary import print_summary
from kattn_cli.tables.text import write_frame

DONE = "reproduced.json"
WITHOUT_DEVICE = ("plot", "kernel-pca")


@dataclass(frozen=True)
class Reproduction:
    """How tables are made again. ``seeds``: in place of the recipes'; ``overrides``: of every recipe."""

    results: Path
    size: SizeName
    seeds: tuple[int, ...]
    overrides: tuple[str, ...]
    jobs: int
    device: str
    quiet: bool

    def shared(self, verb: str) -> list[str]:
        """Return the options that every subcommand takes."""
        device = [] if verb in WITHOUT_DEVICE else ["--device", self.device]
        return ["--results", str(self.results), *device, *(["--quiet"] if self.quiet else [])]


@dataclass(frozen=True)
class Training:
    """One line of a plan's ``train``."""

    reference: str
    overrides: tuple[str, ...]
    seeds: tuple[int, ...]

    def recipes(self) -> Iterator[tuple[Recipe, Path]]:
        """Yield each recipe and seed that it trains, with its file."""
        for source, loaded in recipes.load_each([self.reference], self.overrides, weights=False):
            for recipe in per_seed(loaded, self.seeds):
                yield recipe, source.path


def reproduce(plans: dict[str, Plan], settings: Reproduction) -> None:
    """Make each table at one size; what is done already is not done again.

    One that fails is named, and the others go on.

    Raises:
        KattnError: if one has no such size, before any work, or one failed, at the end.
        Stopped: after Ctrl-C.
    """
    sizes = {name: plan.size(settings.size, name) for name, plan in plans.items()}
    failed = {}
    for name, size in sizes.items():
        console.print(f"\n{name}: {plans[name].title}")
        try:
            runs = _make(size, settings)
            _show(name, size, runs, settings)
        except KattnError as error:
            failed[name] = str(error)
            console.print(f"{name}: {error}")
    if failed:
        reasons = "\n".join(f"{name}: {reason}" for name, reason in failed.items())
        raise KattnError(f"{len(failed)} of {len(sizes)} could not be made; the same command goes on:\n{reasons}")


def commands(size: Size, settings: Reproduction) -> Iterator[list[str]]:
    """Yield every subcommand with its arguments, as a user would type them; a measurement names recipes for runs."""
    yield from map(shlex.split, size.prepare)
    trainings = _trainings(size, settings)
    for together in _alike(trainings):
        yield _train(together, settings)
    for alone in size.run:
        yield _alone(alone, settings)
    names = list(dict.fromkeys(one.reference for one in trainings))
    for measurement in size.measure:
        yield _measure(measurement, names if isinstance(measurement, str) else measurement.on, settings)


def _make(size: Size, settings: Reproduction) -> list[Run]:
    for line in size.prepare:
        _once(shlex.split(line), settings)
    trainings = _trainings(size, settings)
    for together in _alike(trainings):
        if left := [one for one in together if None in _runs_of(one, settings)]:
            _call(_train(left, settings))
    for line in size.run:
        _once(_alone(line, settings), settings)
    made = {run: one.reference for one in trainings for run in _runs_of(one, settings) if run}
    for measurement in size.measure:
        of = [run for run in made if isinstance(measurement, str) or made[run] in measurement.on]
        _once(_measure(measurement, [str(run.folder) for run in of], settings), settings)
    return list(made)


def _trainings(size: Size, settings: Reproduction) -> list[Training]:
    found = []
    for line in size.train:
        reference, *rest = shlex.split(line.format(results=settings.results))
        own = tuple(int(seed) for flag, seed in pairwise(rest) if flag == "--seed")
        overrides = tuple(one for one in rest if "=" in one)
        found.append(Training(reference, (*overrides, *settings.overrides), settings.seeds or own))
    return found


def _alike(trainings: Sequence[Training]) -> Iterator[list[Training]]:
    """Yield neighbours that one command trains: of the same overrides and seeds."""
    for _, together in groupby(trainings, key=lambda one: (one.overrides, one.seeds)):
        yield list(together)


def _runs_of(training: Training, settings: Reproduction) -> list[Run | None]:
    """Return the finished run of each recipe and seed; None where there is none yet."""
    found = [find_unfinished(*one, settings.results, force=False) for one in training.recipes()]
    return [there.run if there and there.done else None for there in found]


def _train(together: Sequence[Training], settings: Reproduction) -> list[str]:
    one = together[0]
    seeds = [word for seed in one.seeds for word in ("--seed", str(seed))]
    jobs = ["--jobs", str(settings.jobs)] if settings.jobs > 1 else []
    references = [training.reference for training in together]
    return ["train", *references, *one.overrides, *seeds, *jobs, "--resume", *settings.shared("train")]


def _measure(line: str | Measurement, runs: Sequence[str], settings: Reproduction) -> list[str]:
    verb, *options = shlex.split(line if isinstance(line, str) else line.run)
    filled = [one.format(results=settings.results) for one in options]
    return [verb, *runs, *filled, *settings.shared(verb)]


def _alone(line: str, settings: Reproduction) -> list[str]:
    verb, *rest = shlex.split(line.format(results=settings.results))
    return [verb, *rest, *settings.shared(verb)]


def _once(arguments: list[str], settings: Reproduction) -> None:
    """Run a command, unless this very one went well before with these results."""
    path = settings.results / DONE
    command = shlex.join(one for one in arguments if one != "--quiet")
    if command not in _done(path):
        _call(arguments)
        with changing(path):
            write_text(path, json.dumps([*_done(path), command], indent=2) + "\n")


def _done(path: Path) -> list[str]:
    """Return the commands that went well.

    Raises:
        KattnError: if their list cannot be read.
    """
    try:
        done = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    except OSError as error:
        raise KattnError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, RecursionError):
        done = None
    if not isinstance(done, list) or not all(isinstance(one, str) for one in done):
        raise KattnError(f"{path}: is no list of commands: it is damaged; remove it to measure everything again")
    return done


def _call(arguments: list[str]) -> None:
    """Print one subcommand and run it."""
    console.print(f"$ {shlex.join(['kattn', *arguments])}")
    call(arguments)


def _show(name: str, size: Size, runs: Sequence[Run], settings: Reproduction) -> None:
    """Print and keep the paper's table with ours in it; without one, print the comparison of the runs."""
    in_paper, _, table = name.partition("/")
    if not runs:
        return
    if paper := PAPERS.get(in_paper):
        numbers = beside(measured(runs), paper, [table])
        if len(numbers):
            text, path = sections(numbers, paper), settings.results / "tables" / f"{paper.name}_{table}.md"
            write_frame(path.with_suffix(".csv"), numbers)
            write_text(path, as_markdown(text))
            print_sections(text)
            console.print(f"{path}")
            if size.differs:
                console.print(f"Not the paper's size: {size.differs}.")
            return
    print_summary(runs)
