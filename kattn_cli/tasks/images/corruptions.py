"""The test set under the corruptions of ImageNet-C, a row for each type and severity."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import pandas as pd
from torch import Tensor

from kattn_cli.console import console
from kattn_cli.data.corruptions import CORRUPTIONS, SEVERITIES, ParameterSet, parameters_for, read_textures
from kattn_cli.errors import DataError, KattnError, did_you_mean
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tasks.images.evaluation import EVAL_CSV, Evaluated, Step, Subject
from kattn_cli.tasks.task import Asked
from kattn_cli.training.corrupted import CORRUPTED_BATCH, CorruptedSplit, Making
from kattn_cli.training.evaluate import outputs_on

Corrupted = tuple[str, int]
"""Type and severity."""


@dataclass(frozen=True)
class Corruptions:
    """Which types at which severities, and how they are made.

    ``parameters``: by default what goes with the size of the images. ``textures``: photographs of frost, each
    ``(3, h, w)`` in [0, 1]; by default none. ``again``: the folders of runs of which nothing is kept.
    """

    names: Sequence[str] = tuple(CORRUPTIONS)
    severities: Sequence[int] = SEVERITIES
    seed: int = 0
    parameters: ParameterSet | None = None
    textures: Sequence[Tensor] | None = None
    again: Collection[Path] = field(default=())

    @classmethod
    def of(cls, asked: Asked, runs: Sequence[Run]) -> Corruptions:
        """Return what ``kattn eval`` was asked for, to be measured of ``runs``."""
        return cls(
            names=corruption_names(asked.corruption),
            severities=severities(asked.severity),
            seed=asked.seed,
            parameters=asked.parameters,
            textures=frost_textures(asked.frost),
            again=asked.anew(runs),
        )

    def making(self, image_size: int) -> Making:
        """Return how images of this size are corrupted."""
        return Making(self.parameters or parameters_for(image_size), self.seed, self.textures)

    def measured(self, run: Run, clean: Mapping[str, Any], image_size: int) -> pd.DataFrame:
        """Return the rows in a run's ``eval.csv`` that go with the row ``clean`` of the same images, in their order.

        Columns ``corruption``, ``severity``, ``top1``; all types and severities that are there, asked for or not.
        """
        known = self.known(run.folder / EVAL_CSV, clean, image_size)
        found = {one: float(row["top1"]) for one, row in known.items()}
        rows = [
            {"corruption": name, "severity": severity, "top1": found[name, severity]}
            for name in CORRUPTIONS
            for severity in SEVERITIES
            if (name, severity) in found
        ]
        return pd.DataFrame(rows, columns=["corruption", "severity", "top1"])

    def steps(self, subject: Subject) -> list[Step]:
        """See :class:`~kattn_cli.tasks.images.evaluation.Part`; what was measured before is left out, and said."""
        kept = self.measured(subject.run, subject.clean_row, subject.images("--corruptions").data.image_size)
        left = self.left(subject.run, set(zip(kept["corruption"], kept["severity"], strict=True)))
        return [partial(self._measure, subject, name, severity) for name, severity in left]

    def known(self, path: Path, clean: Mapping[str, Any], image_size: int) -> dict[Corrupted, dict[str, str]]:
        """Return the rows of a table that go with the row ``clean`` of the same images, by type and severity."""
        columns = {name: clean[name] for name in ("split", "images", "checkpoint", "weights")}
        columns |= {"parameters": self.making(image_size).parameters, "seed": self.seed}
        setting = {name: str(value) for name, value in columns.items()}
        found = {}
        for row in read_rows(path):
            name = row.get("corruption", "")
            frost = self.frost if name == "frost" else ""
            later = (row.get("textures", ""), row.get("run_as", ""))  # columns that older files lack
            if name in CORRUPTIONS and later == (frost, clean.get("run_as", "")) and setting.items() <= row.items():
                found[name, int(row["severity"])] = row
        return found

    def left(self, run: Run, done: Collection[Corrupted]) -> list[Corrupted]:
        """Return what is asked for and not ``done``, or all of a run to be measured again; what is left out is said."""
        kept = () if run.folder in self.again else done
        asked = [(name, severity) for name in self.names for severity in self.severities]
        left = [one for one in asked if one not in kept]
        if len(left) < len(asked):
            before = f"{len(asked) - len(left)} of {len(asked)} corruptions were measured before"
            console.print(f"{run.folder}: {before} (--again measures them anew)")
        return left

    def columns(self, name: str, severity: int, image_size: int) -> dict[str, Any]:
        """Return what a row says of its images."""
        making = self.making(image_size)
        return {
            "corruption": name,
            "severity": severity,
            "parameters": making.parameters,
            "seed": making.seed,
            "textures": self.frost if name == "frost" else "",
        }

    def _measure(self, subject: Subject, name: str, severity: int) -> str:
        size = subject.images("--corruptions").data.image_size
        corrupted = CorruptedSplit(subject.split, name, severity, self.making(size))
        columns = self.columns(name, severity, size)
        row = subject.row(outputs_on(subject.opened.model, corrupted, CORRUPTED_BATCH), **columns)
        subject.write(row)
        return f"{name} {severity}: error {100 - row['top1']:.1f}"

    def errors(self, evaluated: Evaluated) -> pd.DataFrame:
        """Return what :meth:`measured` finds for an evaluated run."""
        return self.measured(evaluated.run, evaluated.clean, evaluated.image_data.image_size)

    @cached_property
    def frost(self) -> str:
        """A fingerprint of the photographs."""
        digest = hashlib.sha256()
        for texture in self.textures or ():
            digest.update(texture.contiguous().numpy().tobytes())
        return digest.hexdigest()[:12] if self.textures else ""


def frost_textures(folder: Path | None) -> Sequence[Tensor] | None:
    """Return the photographs of frost in a folder, if one is given.

    Raises:
        DataError: if they cannot be read.
    """
    try:
        return read_textures(folder) if folder else None
    except DataError as error:
        raise DataError(f"--frost: {error}") from None


def corruption_names(asked: Sequence[str]) -> tuple[str, ...]:
    """Return the types asked for, in ImageNet-C's order; all of them, if none is.

    Raises:
        KattnError: if there is no such type, with the nearest.
    """
    for name in asked:
        if name not in CORRUPTIONS:
            hint = did_you_mean(name, CORRUPTIONS) or f"; there are {', '.join(CORRUPTIONS)}"
            raise KattnError(f"--corruption {name}: there is no such type{hint}")
    return tuple(name for name in CORRUPTIONS if not asked or name in asked)


def severities(asked: Sequence[int]) -> tuple[int, ...]:
    """Return the severities asked for; all five, if none is.

    Raises:
        KattnError: if one is not from 1 to 5.
    """
    for severity in asked:
        if severity not in SEVERITIES:
            raise KattnError(f"--severity {severity}: expected 1, 2, 3, 4 or 5")
    return tuple(one for one in SEVERITIES if not asked or one in asked)
