"""``kattn eval`` of runs of every kind: the options that each kind takes, and what measures it."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from kattn_cli.commands.named_paths import named_paths
from kattn_cli.data import SplitName
from kattn_cli.data.corruptions import ParameterSet
from kattn_cli.errors import KattnError, stoppable
from kattn_cli.runs.run import Run, figures_folder
from kattn_cli.tasks.control import rollouts
from kattn_cli.tasks.control.report import measure_and_print as print_rollouts
from kattn_cli.tasks.images.corruptions import Corruptions, corruption_names, frost_textures, severities
from kattn_cli.tasks.images.evaluation import Settings
from kattn_cli.tasks.images.out_of_distribution import other_folders
from kattn_cli.tasks.images.report import evaluate_and_report
from kattn_cli.tasks.images.save_images import save_sheets
from kattn_cli.tasks.masks.report import evaluate_and_print as print_segmentations
from kattn_cli.tasks.text import perplexity
from kattn_cli.tasks.text.report import measure_and_print as print_perplexities


@dataclass(frozen=True)
class Asked:
    """The options of ``kattn eval``, by their names there; ``device`` is the one that ``--device`` means."""

    device: torch.device
    results: Path
    checkpoint: str
    again: bool
    split: SplitName
    limit: int | None
    corruptions: bool
    corruption: Sequence[str]
    severity: Sequence[int]
    seed: int
    parameters: ParameterSet | None
    frost: Path | None
    reference: str | None
    ood: Sequence[str]
    save_images: bool
    window: int | None
    stride: int | None
    corpus: Sequence[str]
    target_return: Sequence[float]
    episodes: int | None
    workers: bool

    @property
    def corrupted(self) -> bool:
        """Whether anything is to be measured under corruption."""
        return bool(self.corruptions or self.corruption or self.severity)

    @property
    def settings(self) -> Settings:
        """Of what is classified, whole or by pixels."""
        return Settings(self.device, self.checkpoint, self.split, self.limit)

    def making(self, runs: Sequence[Run]) -> Corruptions:
        """Which corruptions, and how they are made for these runs."""
        return Corruptions(
            names=corruption_names(self.corruption),
            severities=severities(self.severity),
            seed=self.seed,
            parameters=self.parameters,
            textures=frost_textures(self.frost),
            again=self.anew(runs),
        )

    def anew(self, runs: Sequence[Run]) -> list[Path]:
        """The folders of which nothing is kept."""
        return [run.folder for run in runs] if self.again else []


def evaluate_kinds(runs: Sequence[Run], asked: Asked, given: Collection[str]) -> None:
    """Measure each run as its kind is measured, and print what came out.

    Args:
        given: the names of the options that were given, of which each run must take all.

    Raises:
        KattnError: if a run is of a kind that an option does not go with, or two options exclude each other.
    """
    for run in runs:
        for option in given:
            kinds = [kind for kind, (takes, _) in KINDS.items() if option in takes]
            if kinds and run.reads not in kinds:
                flag = f"--{option.replace('_', '-')}"
                raise KattnError(f"{run.folder}: reads {run.reads}; {flag} is for runs on {' or '.join(kinds)}")
    _check(asked)
    by_measure: dict[Measure, list[Run]] = {}
    for run in runs:
        by_measure.setdefault(KINDS[run.reads][1], []).append(run)
    for measure, alike in by_measure.items():
        measure(alike, asked)


def _check(asked: Asked) -> None:
    if asked.split != "test" and (asked.corrupted or asked.ood):
        raise KattnError(f"--split {asked.split}: corruptions and other folders go with the test set; leave it out")
    if asked.limit and asked.ood:
        raise KattnError("--limit: other folders are evaluated whole; leave it or --ood out")
    if asked.reference and not (asked.corrupted or asked.ood):
        raise KattnError("--reference: is for errors under corruption; add --corruptions")


def _classify(runs: Sequence[Run], asked: Asked) -> None:
    making, folders = asked.making(runs), other_folders(asked.ood, asked.anew(runs))
    if asked.save_images:
        save_sheets(runs, making)
        if not (asked.corrupted or folders):
            return
    with stoppable("what was measured so far is in each run's eval.csv; the same command goes on from there"):
        evaluate_and_report(
            runs,
            asked.settings,
            corruptions=making if asked.corrupted else None,
            folders=folders,
            reference=asked.reference,
            results=asked.results,
            figures=figures_folder(asked.results, runs),
        )


def _segment(runs: Sequence[Run], asked: Asked) -> None:
    print_segmentations(runs, asked.settings, asked.making(runs) if asked.corrupted else None, asked.save_images)


def _predict(runs: Sequence[Run], asked: Asked) -> None:
    corpora = named_paths("--corpus", asked.corpus, "ptb=data/ptb.test.txt")
    texts = [perplexity.Text(split=asked.split), *(perplexity.Text(corpus=name, path=path) for name, path in corpora)]
    given = (asked.window, asked.stride or 1, asked.limit, asked.again)
    print_perplexities(runs, texts, perplexity.Settings(asked.device, asked.checkpoint, *given))


def _act(runs: Sequence[Run], asked: Asked) -> None:
    given = (asked.target_return, asked.episodes or 10, asked.seed)
    settings = rollouts.Settings(asked.device, asked.checkpoint, *given, workers=asked.workers, again=asked.again)
    print_rollouts(runs, settings)


Measure = Callable[[Sequence[Run], Asked], None]
OF_SPLITS = frozenset({"split", "limit"})
OF_CORRUPTIONS = frozenset({"corruptions", "corruption", "severity", "seed", "parameters", "frost", "save_images"})
KINDS: dict[str, tuple[frozenset[str], Measure]] = {
    "images": (OF_SPLITS | OF_CORRUPTIONS | {"reference", "ood"}, _classify),
    "images with masks": (OF_SPLITS | OF_CORRUPTIONS, _segment),
    "sequences": (OF_SPLITS, _classify),
    "text": (OF_SPLITS | {"window", "stride", "corpus"}, _predict),
    "trajectories": (frozenset({"seed", "target_return", "episodes", "workers"}), _act),
}
"""By what the runs read, the options that are not for every kind, and what measures it."""
