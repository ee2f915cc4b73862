"""``kattn data``: which data sets there are, whether one is all there, and getting it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kattn_cli.console import console
from kattn_cli.data import data_set
from kattn_cli.data.dataset import DataSet, FileCheck
from kattn_cli.errors import DataError, RecipeError, did_you_mean
from kattn_cli.experiment.recipes import option_faults_of, resolved
from kattn_cli.recipe.data import DataSection
from kattn_cli.recipe.faults import faults_of
from kattn_cli.recipe.options import option_faults
from kattn_cli.recipe.strict_yaml import Fault, parse
from kattn_cli.tasks import all_data_sets, task_reading

BAD = ("missing", "wrong checksum")


def data_rows() -> list[tuple[str, str, str]]:
    """Return for each data set its name, what it is, and whether and where it is."""
    return [(name, f"{cls.description}{_facts(cls)}", _where(cls)) for name, cls in all_data_sets().items()]


def _facts(cls: type[DataSet]) -> str:
    if option_faults(cls, {}, ()) or not (facts := task_reading(cls.reads).known_facts(cls())):
        return ""
    if not hasattr(facts, "image_size"):
        return ""
    size = f"{facts.image_size} × {facts.image_size}" if facts.image_size else "sizes vary"
    return f"; {facts.classes} classes, {size} × {facts.channels}"


def _where(cls: type[DataSet]) -> str:
    if option_faults(cls, {}, ()):
        return "where its options say"
    source = cls()
    if source.missing():
        return f"not in {' or '.join(map(_short, source.places()))}" if source.places() else "not here"
    return f"in {_short(source.places()[0])}" if source.places() else "here"


def _short(path: Path) -> str:
    """Return the path with ``~`` for the user's home."""
    return f"~/{path.relative_to(Path.home())}" if path.is_relative_to(Path.home()) else str(path)


def check_data(name: str, overrides: Sequence[str]) -> None:
    """Print each file of a data set with its check, then how many images there are.

    Raises:
        RecipeError: if the name or an option is at fault.
        DataError: if a file is missing or damaged, with how to get it.
    """
    data = section(name, overrides)
    undecoded = {"in_memory": False} if "in_memory" in data.options else {}
    source = data_set(data.model_copy(update=undecoded), all_data_sets())
    files = source.files()
    _print_files(files)
    bad = [check for check in files if check.status in BAD]
    if missing := source.missing():
        raise DataError(f"{name}: {missing.removeprefix('data.')}")
    if bad:
        count = "1 file is" if len(bad) == 1 else f"{len(bad)} files are"
        raise DataError(f"{name}: {count} damaged; remove what is and get it again: {source.how_to_get}")
    console.print(f"{name}: {task_reading(source.reads).contents(source, data)}")


def fetch_data(name: str, overrides: Sequence[str]) -> None:
    """Download what is missing of a data set.

    Raises:
        RecipeError: if the name or an option is at fault.
        DataError: if it cannot be downloaded, or is damaged afterwards.
    """
    source = data_set(section(name, overrides), all_data_sets())
    if source.missing():
        source.fetch()
    check_data(name, overrides)


def section(name: str, overrides: Sequence[str]) -> DataSection:
    """Return the data section that ``name`` and ``key=value`` give, every option written out.

    Raises:
        RecipeError: naming every fault.
    """
    known = all_data_sets()
    if name not in known:
        raise RecipeError(f"{name}: expected one of {', '.join(known)}{did_you_mean(name, known)}")
    kind = known[name].section
    given: dict[str, Any] = {"name": name}
    faults: list[Fault] = []
    for override in overrides:
        key, equals, text = override.removeprefix("data.").partition("=")
        value = parse(text)
        if not equals:
            faults.append(Fault((override,), "expected key=value, for example root=/data"))
        faults += [Fault((key,), fault.message) for fault in value.faults]
        given[key] = value.data
    try:
        data = kind.model_validate(given)
    except ValidationError as error:
        faults += faults_of(error, (), kind)
    else:
        faults += [Fault(fault.path[1:], fault.message) for fault in option_faults_of(data)]
    if faults:
        raise RecipeError("\n".join(f"{name}: {'.'.join(map(str, fault.path))} {fault.message}" for fault in faults))
    return resolved(data)


def _print_files(files: Sequence[FileCheck]) -> None:
    for check in files:
        size = f"{check.path.stat().st_size:,} bytes" if check.path.is_file() else ""
        line = "  ".join(part for part in (str(check.path), check.status, size, check.detail) if part)
        console.print(line)
