"""Whether the candidate's accuracy under attack can be believed: no weaker attack may do better than PGD.

Athalye et al. (2018): where FGSM, noise or images made for another model hurt more than PGD, gradients are masked.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from kattn_cli.attacks import ATTACKS, AttackSettings
from kattn_cli.commands.attack.checks import TOLERANCE
from kattn_cli.commands.judge.battery import BASELINE, CANDIDATE
from kattn_cli.commands.judge.probes.finding import Finding
from kattn_cli.experiment.run import open_run
from kattn_cli.runs.csv_rows import Row, read_rows, write_rows
from kattn_cli.runs.run import Run
from kattn_cli.studies.answer import Answer
from kattn_cli.studies.study import number_of
from kattn_cli.training.opened import as_image_run
from kattn_cli.training.seed import Stream, generator

TRANSFER_CSV = "transfer.csv"


def checked(answer: Answer, folder: Path, device: torch.device) -> Finding:
    """Compare PGD with FGSM, with noise, and with PGD's images of softmax attention's run of the same seed.

    The last are measured here, a row for each pair of weights in ``transfer.csv``.
    """
    question = "Trained: is PGD the strongest attack on it?"
    top1 = {name: answer.found.get(name, {}).get(CANDIDATE) for name in ("pgd", "fgsm", "noise")}
    means = {name: fmean(known.values.values()) for name, known in top1.items() if known and known.values}
    if "pgd" not in means:
        return Finding.unasked(question, "nothing is attacked yet")
    epsilon = number_of(_epsilon(answer))
    assert epsilon is not None
    transferred = _transfer(answer.runs, epsilon, folder, device)
    if transferred:
        means["images made for softmax"] = fmean(transferred)
    pgd = means.pop("pgd")
    stronger = [name for name, mean in means.items() if mean < pgd - TOLERANCE]
    left = ", ".join(f"{name} {mean:.1f}" for name, mean in means.items())
    why = f"; {' and '.join(stronger)} hurt more: its gradients are masked" if stronger else ""
    return Finding.of(question, bool(stronger), f"PGD leaves {pgd:.1f} % right, {left}{why}")


def _epsilon(answer: Answer) -> Any:
    return answer.study.measures["pgd"].where["epsilon"]


def _transfer(runs: Mapping[str, Mapping[int, Run]], epsilon: float, folder: Path, device: torch.device) -> list[float]:
    path = folder / TRANSFER_CSV
    there = read_rows(path) if path.exists() else []
    known: dict[Any, Row] = {(row["weights"], row["source_weights"]): row for row in there}
    rows: list[Row] = []
    for seed in sorted(set(runs.get(CANDIDATE, {})) & set(runs.get(BASELINE, {}))):
        source, target = (as_image_run(open_run(runs[arm][seed], device), "an attack") for arm in (BASELINE, CANDIDATE))
        row = known.get((target.weights, source.weights))
        if row is None:
            pgd = ATTACKS["pgd"]
            settings = AttackSettings("linf", epsilon, pgd.steps, pgd.relative_step)
            right: list[torch.Tensor] = []
            for number, (images, labels) in enumerate(target.data.splits["test"].to(device).batches(256)):
                source.model.requires_grad_(False)
                made = pgd.perturb(source.model, images, labels, settings, generator(0, Stream.ATTACK, number))
                with torch.no_grad():
                    right.append(target.model(made).argmax(-1) == labels)
            share = 100 * torch.cat(right).double().mean().item()
            row = {"seed": seed, "top1": share, "weights": target.weights, "source_weights": source.weights}
        rows.append(row)
    if rows:
        write_rows(path, rows)
    return [float(row["top1"]) for row in rows]
