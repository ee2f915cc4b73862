"""A study as its file has it.

.. code-block:: yaml

    question: Does the pursuit of RPC-Attention do anything?
    seeds: [0, 1, 2, 3, 4]
    arms:
      rpc: fashion_mnist/trained/rpc
      s_is_0: fashion_mnist/trained/rpc_zero train.epochs=5
      run_as_symmetric: {of: rpc, run_as: fashion_mnist/trained/symmetric}
    measures:
      clean: {run: eval, margin: 1}
      pgd: {run: attack --pgd --epsilon 4/255 --no-checks, where: {attack: pgd}, images: 2000, margin: 3}
    comparisons:
      - {first: rpc, second: s_is_0, primary: true, published: {clean: 0.1}}

An arm is a recipe with overrides, as ``kattn train`` takes them, or the runs ``of`` another arm, run as the attention
of another recipe. A measure is a number of every run: a subcommand that measures it, and the rows of the table in which
it then stands. A comparison is of two arms in all measures, or in those that it names.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.recipe.faults import RecipeFaults, faults_of
from kattn_cli.recipe.files import YAML, read_file
from kattn_cli.recipe.schema import Seed
from kattn_cli.recipe.strict_yaml import Document, Fault, KeyPath

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
TABLES = {"eval": "eval.csv", "attack": "attacks.csv", "spectrum": "effective_rank.csv", "train": "metrics.csv"}
"""The table in which a subcommand leaves what it measured, where a measure names no other."""
Name = Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*$", max_length=60)]
Cell = str | int | float | bool


def _of_recipe(value: object) -> object:
    return {"recipe": value} if isinstance(value, str) else value


class Arm(BaseModel):
    """What is compared: the runs of a recipe, or those ``of`` another arm, ``run_as`` another recipe's attention.

    ``recipe``: a reference and overrides, as ``kattn train`` takes them. ``about``: in a few words, for the page.
    """

    model_config = STRICT
    recipe: str | None = None
    of: Name | None = None
    run_as: str | None = None
    about: str = ""

    @property
    def reference(self) -> str:
        """Return the recipe's name or file."""
        return shlex.split(self.recipe or "")[0]

    @property
    def overrides(self) -> tuple[str, ...]:
        """Return what follows it: ``train.epochs=5``."""
        return tuple(shlex.split(self.recipe or "")[1:])


class Measure(BaseModel):
    """A number of every run: the mean of a column of those rows of a table that a subcommand leaves.

    Args:
        run: the subcommand and its options, without runs: ``eval``, ``attack --pgd --epsilon 4/255``; ``train`` where
            the training leaves the number itself.
        table: by default that of :data:`TABLES`.
        where: the values of columns in the rows that count: one, or a list; ``last`` is the greatest number.
        value: the column.
        images: so many first test images, ``--limit`` for the subcommand; by default all.
        gradient_as: the recipe whose attention gives an attack its gradient, by default the run's own.
        among: another measure of right answers: the share that is right here of what is right there, run by run.
        margin: the smallest difference that matters, in the unit of the column; a measure without one is told on the
            page, and nothing is judged by it.
        lower_is_better: whether less of it is better.
        seeds: by default those of the study.
        arms: of which it is taken, by default of all.
        unit: of the column, for the page.
    """

    model_config = STRICT
    run: str
    table: str = ""
    where: Mapping[str, Cell | list[Cell]] = Field(default_factory=dict)
    value: str = "top1"
    images: Annotated[int, Field(ge=1)] | None = None
    gradient_as: str = ""
    among: Name | None = None
    margin: Annotated[float, Field(gt=0)] | None = None
    lower_is_better: bool = False
    seeds: list[Seed] | None = None
    arms: list[Name] | None = None
    unit: str = "points"

    @property
    def verb(self) -> str:
        """Return the subcommand without its options."""
        return shlex.split(self.run)[0]

    @property
    def file(self) -> str:
        """Return the table that holds it."""
        return self.table or TABLES.get(self.verb, "")

    @property
    def command(self) -> list[str]:
        """Return the subcommand with all options, but for runs; empty where a training is enough."""
        limit = ["--limit", str(self.images)] if self.images else []
        gradient = ["--gradient-as", self.gradient_as] if self.gradient_as else []
        return [] if self.verb == "train" else [*shlex.split(self.run), *limit, *gradient]

    @property
    def of_answers(self) -> bool:
        """Return whether it is a share of right answers, each of which may be kept."""
        return self.value == "top1"


class Comparison(BaseModel):
    """The first arm less the second. ``published``: the difference that the paper prints, by measure."""

    model_config = STRICT
    first: Name
    second: Name
    measures: list[Name] | None = None
    primary: bool = False
    published: Mapping[Name, float] = Field(default_factory=dict)


class Study(BaseModel):
    """A question and all that is needed to answer it. ``name``: by default that of its file."""

    model_config = STRICT
    name: Annotated[str, Field(pattern=r"^[A-Za-z0-9][\w.+-]*(/[A-Za-z0-9][\w.+-]*)*$", max_length=120)]
    question: Annotated[str, Field(min_length=1)]
    background: str = ""
    seeds: Annotated[list[Seed], Field(min_length=1)]
    arms: Annotated[Mapping[Name, Annotated[Arm, BeforeValidator(_of_recipe)]], Field(min_length=1)]
    measures: Annotated[Mapping[Name, Measure], Field(min_length=1)]
    comparisons: Annotated[list[Comparison], Field(min_length=1)]
    level: Annotated[float, Field(gt=0, le=0.2)] = 0.05

    def measured(self, comparison: Comparison) -> list[str]:
        """Return the measures in which two arms are compared."""
        both = {comparison.first, comparison.second}
        named = comparison.measures or [name for name, one in self.measures.items() if one.margin]
        return [one for one in named if both <= set(self.measures[one].arms or self.arms)]

    def seeds_of(self, measure: str) -> list[int]:
        """Return the seeds of which a measure is taken."""
        return self.measures[measure].seeds or self.seeds

    def seeds_of_arm(self, arm: str) -> list[int]:
        """Return the seeds of which some measure of an arm is taken."""
        needed = {seed for name, one in self.measures.items() if arm in (one.arms or self.arms)
                  for seed in self.seeds_of(name)}  # fmt: skip
        return sorted(needed)

    def trained(self) -> dict[str, list[int]]:
        """Return the arms that have runs of their own, with the seeds that these take."""
        seeds: dict[str, set[int]] = {}
        for name, arm in self.arms.items():
            seeds.setdefault(arm.of or name, set()).update(self.seeds_of_arm(name))
        return {name: sorted(some) for name, some in seeds.items() if some}

    @property
    def digest(self) -> str:
        """Return a fingerprint of all that the study says; comments and the order of keys are not part of it."""
        text = json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


def studies_folder() -> Path:
    """Return where the shipped studies lie: inside the wheel, or beside the package in a checkout."""
    room = Path(__file__).parent
    inside = room / "shipped"
    return inside if inside.is_dir() else room.parents[1] / "studies"


def shipped_studies() -> list[str]:
    """Return the names of the studies that come with kattn."""
    folder = studies_folder()
    return sorted(path.relative_to(folder).with_suffix("").as_posix() for path in folder.rglob("*.yaml"))


def find_study(reference: str) -> Path:
    """Return the file of a study: a path, or the name of a shipped one.

    Raises:
        RecipeError: if there is none, with the nearest name.
    """
    for base in (Path(reference), studies_folder() / reference):
        for path in (base, Path(f"{base}.yaml")):
            if path.is_file() and path.suffix in YAML:
                return path
    names = shipped_studies()
    hint = did_you_mean(reference.removesuffix(".yaml"), names) or f"; those that come with kattn: {', '.join(names)}"
    raise RecipeError(f"{reference}: there is no such study{hint}")


def load_study(path: Path) -> Study:
    """Return the study of a file.

    Raises:
        RecipeError: naming every fault, each with its line, its key and what was expected.
    """
    document = read_file(path)
    if not document.faults and not isinstance(document.data, dict):
        raise RecipeError(f"{path}: expected a mapping of keys (question, arms, measures, …)")
    study = _read(document, path.stem) if not document.faults else None
    if study is None:
        raise RecipeFaults.of(str(path), document)
    return study


def number_of(cell: Cell) -> float | None:
    """Return a number, also one that is written as a fraction (``4/255``); None for any other text."""
    try:
        return float(Fraction(cell)) if isinstance(cell, str) else float(cell)
    except (ValueError, ZeroDivisionError):
        return None


def _read(document: Document, stem: str) -> Study | None:
    try:
        study = Study.model_validate({"name": stem, **document.data})
    except ValidationError as error:
        document.faults += faults_of(error, (), Study)
        return None
    document.faults += _contradictions(study)
    return None if document.faults else study


def _contradictions(study: Study) -> Iterator[Fault]:
    """Yield what is sound alone and not together."""
    for name, arm in study.arms.items():
        yield from _faults_of_arm(study, name, arm)
    for name, measure in study.measures.items():
        path = ("measures", name)
        if not measure.run.split():
            yield Fault((*path, "run"), "expected a subcommand, such as eval")
        elif not measure.file:
            yield Fault((*path, "table"), f"is missing: kattn {measure.verb} leaves no table of its own name")
        for arm_name in measure.arms or []:
            yield from _unknown((*path, "arms"), arm_name, study.arms)
        if measure.among:
            yield from _unknown((*path, "among"), measure.among, study.measures)
            if not (measure.of_answers and study.measures.get(measure.among, measure).of_answers):
                yield Fault((*path, "among"), "is for shares of right answers (value: top1), here and there")
    for number, one in enumerate(study.comparisons):
        yield from _faults_of_comparison(study, ("comparisons", number), one)
    if not any(one.primary for one in study.comparisons):
        yield Fault(("comparisons",), "none is primary: say which one answers the question (primary: true)")


def _faults_of_comparison(study: Study, path: KeyPath, one: Comparison) -> Iterator[Fault]:
    for side in ("first", "second"):
        yield from _unknown((*path, side), getattr(one, side), study.arms)
    for name in [*(one.measures or []), *one.published]:
        yield from _unknown((*path, "measures"), name, study.measures)
        if name in study.measures and study.measures[name].margin is None:
            yield Fault((*path, "measures"), f"nothing is judged by {name}, which has no margin")
    if one.first == one.second:
        yield Fault(path, f"compares {one.first} with itself")


def _faults_of_arm(study: Study, name: str, arm: Arm) -> Iterator[Fault]:
    path = ("arms", name)
    if (arm.recipe is None) == (arm.of is None):
        yield Fault(path, "expected a recipe, or of: another arm")
    elif arm.recipe is not None and not arm.recipe.split():
        yield Fault((*path, "recipe"), "expected a recipe, such as quickstart/softmax")
    elif arm.of is not None:
        yield from _unknown((*path, "of"), arm.of, study.arms)
        if arm.run_as is None:
            yield Fault((*path, "run_as"), "is missing: the recipe as whose attention its runs are run")
        elif arm.of in study.arms and study.arms[arm.of].recipe is None:
            yield Fault((*path, "of"), f"{arm.of} has no runs of its own")


def _unknown(path: KeyPath, name: str, known: Mapping[str, object]) -> Iterator[Fault]:
    if name not in known:
        yield Fault(path, f"there is no {name}{did_you_mean(name, known) or '; there are ' + ', '.join(known)}")
