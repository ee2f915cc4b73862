"""The record of a collection: its settings, its evaluations, and the contents of each of its files."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kattn_cli.data.reading.hdf5 import opened
from kattn_cli.data.trajectories.steps import Steps, returns_of
from kattn_cli.environments.names import environment_id, normalised_score
from kattn_cli.errors import DataError, KattnError
from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.provenance import now, provenance
from kattn_cli.runs.whole_file import write_text

if TYPE_CHECKING:
    from kattn_cli.commands.data.collect.training import Evaluation

LEVELS = ("random", "medium", "expert", "medium_replay", "medium_expert")
"""In the order in which they are made."""


class Record:
    """``<environment>_collect.json`` and ``.csv`` beside the files ``<environment>_<level>.hdf5``.

    ``work``: the folder of the training, gone when all is finished.
    """

    def __init__(self, folder: Path, environment: str, settings: Mapping[str, Any]) -> None:
        self.folder, self.environment, self.settings = folder, environment, dict(settings)
        self.stem = environment.lower().replace("/", "-")
        self.path = folder / f"{self.stem}_collect.json"
        self.work = folder / f"{self.stem}_collect"
        self.lock = folder / f".{self.stem}_collect.lock"
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KattnError(f"--output {folder}: cannot be made: {error.strerror or error}") from None

    def file(self, level: str) -> Path:
        """Return the path of one level's file."""
        return self.folder / f"{self.stem}_{level}.hdf5"

    def refuse_others(self) -> None:
        """Refuse to go on with what other settings began, or with files that no record goes with.

        Raises:
            KattnError: naming the settings that differ, or what is in the way.
        """
        if not self.path.exists():
            if there := [self.file(level).name for level in LEVELS if self.file(level).exists()]:
                raise KattnError(f"{self.folder}: has {there[0]} already; take another --output")
            return
        begun = self._read().get("settings", {})
        differing = [key for key, value in self.settings.items() if begun.get(key) != value]
        if differing:
            begun_with = ", ".join(f"{key} {begun.get(key)} and not {self.settings[key]}" for key in differing)
            raise KattnError(f"{self.path}: was begun with {begun_with}; take another --output, or remove it")

    @property
    def finished(self) -> bool:
        """Whether all was made.

        Raises:
            KattnError: if it was, and a file is gone.
        """
        if not self.path.exists() or self._read().get("status") != "finished":
            return False
        for level in LEVELS:
            if not self.file(level).exists():
                gone = f"{self.file(level)} is gone"
                raise KattnError(f"{self.path}: was finished, and {gone}; get it back, or remove both to begin anew")
        return True

    def begin(self, hyperparameters: Mapping[str, Any], bounds: Mapping[str, str]) -> None:
        """Write the settings, unless they are there; ``bounds``: of an action, as each file has them."""
        if not self.path.exists():
            begun = {"status": "running", "settings": self.settings, "environment": environment_id(self.environment)}
            begun = {**begun, "hyperparameters": hyperparameters, "bounds": bounds}
            self._write({**begun, "provenance": provenance("cpu")})

    def write_table(self, evaluations: Sequence[Evaluation]) -> None:
        """Write the evaluations so far into ``<environment>_collect.csv``."""
        write_rows(self.path.with_suffix(".csv"), [asdict(one) for one in evaluations])

    def finish(self, chosen: Mapping[str, Evaluation], evaluations: Sequence[Evaluation]) -> None:
        """Add what was chosen, and what is in each file."""
        files = {}
        for level in LEVELS:
            path = self.file(level)
            files[path.name] = {
                "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
                "bytes": path.stat().st_size,
                **{key: self.attributes(level).get(key) for key in _SUMMARY},
            }
        policies = {name: asdict(one) for name, one in chosen.items()}
        results = {"policies": policies, "files": files, "cut": sum(one.cut for one in evaluations)}
        self._write({**self._read(), **results, "status": "finished", "end": now()})

    def attributes_of(self, level: str, steps: Steps, step: int) -> dict[str, Any]:
        """Return a file's attributes; ``step``: of the training, at which its policy was as it is."""
        returns = returns_of(steps.rewards, steps.ends)
        summary = dict(zip(_SUMMARY, (len(steps.rewards), len(returns), returns.mean(), returns.std()), strict=False))
        score = normalised_score(self.environment, float(returns.mean()))
        if score is not None:
            summary["normalised_score"] = score
        record = self._read()
        return {
            "environment": environment_id(self.environment),
            **record["bounds"],
            "level": level,
            "step": step,
            **{key: _plain(value) for key, value in summary.items()},
            "settings": json.dumps(self.settings, sort_keys=True),
            "hyperparameters": json.dumps(record["hyperparameters"], sort_keys=True),
            "versions": json.dumps(record["provenance"]["versions"], sort_keys=True),
            "commit": str(record["provenance"]["commit"]),
        }

    def attributes(self, level: str) -> dict[str, Any]:
        """Return the attributes of a file that is there.

        Raises:
            DataError: if they cannot be read.
        """
        with opened(self.file(level)) as file:
            return file.attributes()

    def mean_return(self, level: str) -> float:
        """Return the mean return in a file that is there.

        Raises:
            DataError: if it cannot be read, or says no such number.
        """
        said = self.attributes(level).get("mean_return")
        if not isinstance(said, int | float):
            raise DataError(f"{self.file(level)}: mean_return: is no number; remove the file to record it again")
        return float(said)

    def steps(self, level: str) -> Steps:
        """Return the steps in a file that is there.

        Raises:
            DataError: if they cannot be read.
        """
        with opened(self.file(level)) as file:
            return Steps(*(file.array(name) for name in Steps._fields))

    def _read(self) -> dict[str, Any]:
        try:
            read = json.loads(self.path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            raise KattnError(f"{self.path}: cannot be read as a collection's record ({error})") from None
        if not isinstance(read, dict):
            raise KattnError(f"{self.path}: cannot be read as a collection's record (it is no mapping)")
        for key in ("settings", "hyperparameters", "bounds", "provenance"):
            if not isinstance(read.get(key), dict):
                raise KattnError(f"{self.path}: cannot be read as a collection's record (it has no {key})")
        return read

    def _write(self, record: Mapping[str, Any]) -> None:
        write_text(self.path, json.dumps(record, indent=2) + "\n")


_SUMMARY = ("transitions", "episodes", "mean_return", "std_return", "normalised_score")


def _plain(value: Any) -> Any:
    return value.item() if hasattr(value, "item") else value
