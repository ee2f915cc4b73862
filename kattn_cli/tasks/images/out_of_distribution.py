"""Other folders of images than the test set: ImageNet-A, -R, -O and -C, and the like of other data sets."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd

from kattn_cli.console import console
from kattn_cli.data.images import SPLITS
from kattn_cli.data.reading.class_folders import ClassFolders, class_names, read_class_folders
from kattn_cli.errors import DataError, KattnError
from kattn_cli.runs.bits import CORRECT
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.statistics.scores import aupr
from kattn_cli.tasks.images.evaluation import EVAL_CSV, Evaluated, Step, Subject
from kattn_cli.tasks.task import named_paths
from kattn_cli.training.evaluate import outputs_on


@dataclass(frozen=True)
class OtherFolder:
    """A folder to evaluate, and what its rows are called.

    ``--ood``'s images are the positives of AUPR, with minus the highest softmax probability as their score; the
    negatives are the clean test images of the folder's classes, or all where none of its folders is a class. Where the
    folder's classes are some of the data set's, only their logits count, as for ImageNet-A, -R and -O. In ImageNet-C's
    layout, what was measured before is kept, but for runs whose folder is in ``again``; there is no AUPR of it.
    """

    name: str
    path: Path
    again: Collection[Path] = ()

    def steps(self, subject: Subject) -> list[Step]:
        """See :class:`~kattn_cli.tasks.images.evaluation.Part`."""
        try:
            folders = read_class_folders(self.path, class_names(subject.images("--ood").section))
        except DataError as error:
            raise DataError(f"--ood {self.name}: {error}") from None
        kept = self.measured(subject.run, subject.clean_row)
        done = set() if subject.run.folder in self.again else {(row["corruption"], row["severity"]) for row in kept}
        left = [one for one in folders if not one.corruption or (one.corruption, str(one.severity)) not in done]
        if len(left) < len(folders):
            before = f"{len(folders) - len(left)} of {len(folders)} folders of {self.name} were measured before"
            console.print(f"{subject.run.folder}: {before} (--again measures them anew)")
        return [partial(self._measure, subject, one) for one in left]

    def measured(self, run: Run, clean: Mapping[str, Any]) -> list[dict[str, str]]:
        """Return the rows of this folder that go with the row ``clean`` of the same weights."""
        same = {"split": self.name, "path": self._path, **{one: clean[one] for one in ("checkpoint", "weights")}}
        rows = [row for row in read_rows(run.folder / EVAL_CSV) if same.items() <= row.items()]
        return [row for row in rows if row.get("run_as", "") == clean["run_as"]]

    def errors(self, evaluated: Evaluated) -> pd.DataFrame:
        """Of a folder in ImageNet-C's layout ``corruption``, ``severity``, ``top1``; of others nothing."""
        rows = self.measured(evaluated.run, evaluated.clean)
        kept = [
            {"corruption": row["corruption"], "severity": int(row["severity"]), "top1": float(row["top1"])}
            for row in rows
            if row["corruption"]
        ]
        return pd.DataFrame(kept, columns=["corruption", "severity", "top1"])

    @property
    def _path(self) -> str:
        return str(self.path)

    def _measure(self, subject: Subject, folders: ClassFolders) -> str:
        opened = subject.images("--ood")
        split = folders.split(opened.section, opened.data).to(subject.asked.device)
        outputs, clean, classes = outputs_on(subject.opened.model, split), subject.clean, folders.classes
        if folders.known:
            outputs, clean = outputs.among(classes), clean.among(classes)
        where: dict[str, Any] = {"split": self.name, "corruption": folders.corruption, "severity": folders.severity}
        where["path"] = self._path
        row = subject.row(outputs, len(classes), **where)
        if not folders.known:
            row |= dict.fromkeys(("top1", "top1_low", "top1_high", "top5", "loss", "ece", CORRECT), "")
        note = f"{self.name} {folders.corruption or ''} {folders.severity or ''}".strip()
        if not folders.corruption:
            scores = [-one.confidence().cpu().numpy() for one in (outputs, clean)]
            chance = len(scores[0]) / (len(scores[0]) + len(scores[1]))
            row |= {"aupr": 100 * aupr(scores[0], scores[1]), "aupr_chance": 100 * chance}
        subject.write(row, measured=["images"])  # a folder is measured whole, whatever lies in it by now
        for name in split.corrupt:
            message = f"{subject.run.folder}: left out an image that cannot be read: {name}"
            console.print(message)
        return f"{note}: top-1 {row['top1']:.1f}" if folders.known else f"{note}: AUPR {row['aupr']:.1f}"


def other_folders(asked: Sequence[str], again: Collection[Path] = ()) -> list[OtherFolder]:
    """Return the folders that ``NAME=PATH`` name.

    Raises:
        KattnError: if that is not what it is, or a name is taken.
    """
    folders: dict[str, OtherFolder] = {}
    for name, folder in named_paths("--ood", asked, "imagenet-a=data/imagenet-a"):
        if name in (*SPLITS, *folders) or not re.fullmatch(r"[A-Za-z0-9][\w.-]*", name):
            why = "is the name of a split" if name in SPLITS else "comes twice" if name in folders else "is no name"
            raise KattnError(f"--ood {name}: {why}; choose another of letters, digits, '-', '_' and '.'")
        if not folder.is_dir():
            raise DataError(f"--ood {name}: {folder} is not a folder")
        folders[name] = OtherFolder(name, folder, again)
    return list(folders.values())
