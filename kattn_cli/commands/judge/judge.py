"""``kattn judge``: a mechanism from its file to a page that says what it is and what it is worth."""

from __future__ import annotations

import time
from dataclasses import dataclass

import torch

from kattn_cli.commands.judge.battery import battery
from kattn_cli.commands.judge.candidate import Candidate
from kattn_cli.commands.judge.growth import growth
from kattn_cli.commands.judge.page import Judgement, printed, write_page
from kattn_cli.commands.judge.probes import PROBES
from kattn_cli.commands.judge.probes.finding import Finding
from kattn_cli.commands.judge.probes.subject import Subject
from kattn_cli.commands.judge.trained import checked
from kattn_cli.commands.study.run import Asked, folder_of, run_study
from kattn_cli.console import console
from kattn_cli.runs.whole_file import make_folder
from kattn_cli.studies.page import PAGE as STUDY_PAGE

FOLDER = "judge"


@dataclass(frozen=True)
class Wanted:
    """The options of the command line. ``quick``: cost at fewer N."""

    seeds: int
    quick: bool
    probes_only: bool
    device: torch.device


def probe(candidate: Candidate) -> list[Finding]:
    """Ask every probe, and print what it says as soon as it does.

    Raises:
        RecipeError: if the mechanism does not fit the contract, or raises an error, in one line.
    """
    subject, findings = Subject(candidate.mechanism), []
    console.print(f"{candidate.name}: what it is")
    for one in PROBES:
        findings.append(one(subject))
        console.print(f"  {findings[-1]}")
    return findings


def judge(candidate: Candidate, wanted: Wanted, asked: Asked) -> None:
    """Probe, train, attack and measure a mechanism beside the baselines, print a line a question, and write the page.

    What is trained or measured already is not done again; the baselines' runs serve every judgement.

    Raises:
        RecipeError, KattnError: if the mechanism is at fault, or some part failed.
        Stopped: after Ctrl-C, with the command that goes on.
    """
    started = time.monotonic()
    findings = probe(candidate)
    if wanted.probes_only:
        return
    folder = asked.results / FOLDER / candidate.label
    make_folder(folder)
    chosen = battery(candidate, wanted.seeds)
    answers = [run_study(study, asked) for study in chosen.studies]
    findings.append(checked(answers[0], folder, wanted.device))
    console.print("time and memory over N")
    costs = growth(candidate, folder, wanted.device, wanted.quick)
    pages = [folder_of(study, asked.results) / STUDY_PAGE for study in chosen.studies]
    seconds = time.monotonic() - started
    judgement = Judgement(candidate, findings, answers, pages, costs, chosen.left_out, seconds)
    page = write_page(judgement, folder, asked.command)
    for line in printed(judgement):
        console.print(line)
    console.print(f"\n{candidate.name}: {judgement.summary()}\n{page}")
