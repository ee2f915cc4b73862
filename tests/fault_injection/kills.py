"""Trainings and measurements killed at random moments, and gone on with: nothing may be lost, nothing left over."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from random import Random

from tiny_tasks import write_tiny

from fault_injection.case import Case, chance, judged
from fault_injection.commands import Command, Kattn, Said
from fault_injection.disk import poor_file_system
from fault_injection.runs import difference, rows, run_folders

PART = "kills"
MOST = 6
"""Kills of one training; then it may end."""


@dataclass(frozen=True)
class Kind:
    """A kind of training: how its recipe is written, and in how many processes it runs."""

    write: Callable[[Path], Path]
    processes: int = 1
    dear: bool = False
    """Whether a start takes many seconds."""
    first: Callable[[], object] | None = None
    """What is called in each process before it begins."""


def _with(task: str, find: str, put: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = write_tiny(task, folder)
        text = path.read_text(encoding="utf-8")
        assert find in text
        path.write_text(text.replace(find, put), encoding="utf-8")
        return path

    return write


def _of(task: str) -> Callable[[Path], Path]:
    return _with(task, "epochs: 3", "epochs: 6, checkpoint_steps: 2")


KINDS = {
    "images": Kind(_of("images")),
    "masks": Kind(_of("masks")),
    "sequences": Kind(_of("sequences")),
    "text": Kind(_of("text")),
    "control": Kind(_of("control")),
    "mixture": Kind(_with("text", "heads: 2}", "heads: 2, experts: {count: 2, top: 1}}")),
    "poor file system": Kind(_of("images"), first=poor_file_system),
    "compiled": Kind(_with("images", "epochs: 3", "epochs: 3, compile: true"), dear=True),
    "fsdp": Kind(_with("images", "epochs: 3", "epochs: 6, parallel: fsdp"), processes=2, dear=True),
}


def trainings(kattn: Kattn, kind: str, rounds: int, seed: int) -> Iterator[Case]:
    """Kill a training of one kind up to :data:`MOST` times, ``rounds`` times over; each kill is a case."""
    folder = kattn.folder / kind.replace(" ", "-")
    folder.mkdir()
    recipe = KINDS[kind].write(folder)
    duration = min(_undisturbed(kattn, kind, recipe, folder / name) for name in ("truth", "truth again"))
    assert not difference(folder / "truth again/tiny/0", folder / "truth/tiny/0"), f"{kind} trains otherwise each time"
    for number in range(rounds):
        results = folder / str(number)
        yield from _killed(kattn, kind, recipe, results, folder / "truth", duration, chance(seed, kind, number))


def _undisturbed(kattn: Kattn, kind: str, recipe: Path, results: Path) -> float:
    """Return the seconds that a training takes; the first one of a compiled model also fills a cache."""
    said = [one.said() for one in _train(kattn, kind, recipe, results)]
    assert all(one.verdict == "ok" for one in said), f"{kind}: {said}"
    return max(one.seconds for one in said)


def _killed(
    kattn: Kattn, kind: str, recipe: Path, results: Path, truth: Path, duration: float, draw: Random
) -> Iterator[Case]:
    kills = 0
    while True:
        training = _train(kattn, kind, recipe, results)
        if kills == MOST or _all_end(training, draw.uniform(0, 0.8 * duration)):
            ended = [one.said() for one in training]
            fault = difference(results / "tiny/0", truth / "tiny/0")
            others = [path for path in run_folders(results) if path != results / "tiny/0"]
            what = f"{kind}, ended after {kills} kills; {fault}"
            yield judged(PART, what, _worst(ended), "lost" if fault else "leftover" if others else "")
            yield _listed(kattn, kind, results)
            return
        for one in training:
            one.kill()
        for one in training:
            one.said()
        kills += 1
        yield _listed(kattn, kind, results)


def _train(kattn: Kattn, kind: str, recipe: Path, results: Path) -> list[Command]:
    words = ("train", recipe, "--resume", "--device", "cpu", "--results", results)
    if KINDS[kind].processes == 1:
        return [kattn.start(*words, first=KINDS[kind].first)]
    world = {"WORLD_SIZE": str(KINDS[kind].processes), "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": _free_port()}
    ranks = range(KINDS[kind].processes)
    return [kattn.start(*words, env={**world, "RANK": str(rank), "LOCAL_RANK": str(rank)}) for rank in ranks]


def _all_end(training: list[Command], seconds: float) -> bool:
    return [one.ended(seconds if number == 0 else 1.0) for number, one in enumerate(training)] == [True] * len(training)


def _worst(said: list[Said]) -> Said:
    return next((one for one in said if one.verdict != "ok"), said[0])


def _free_port() -> str:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return str(one.getsockname()[1])


def _listed(kattn: Kattn, kind: str, results: Path) -> Case:
    """A listing after a kill: it neither fails nor shows what is no run."""
    said = kattn.run("list", "runs", "--results", results)
    leftover = "manifest.json" in said.out or ".0." in said.out
    return judged(PART, f"{kind}, listed", said, "leftover" if leftover else "")


MEASUREMENTS = {
    "eval": (("eval", "tiny", "--corruption", "fog", "--corruption", "contrast"), "eval.csv"),
    "attack": (("attack", "tiny", "--pgd", "--epsilon", "1/255,2/255,4/255", "--batch-size", "64"), "attacks.csv"),
    "spectrum": (("spectrum", "tiny"), "spectrum.csv"),
}
"""A command on a run of images, and the table that it writes."""


def measurements(kattn: Kattn, which: str, rounds: int, seed: int) -> Iterator[Case]:
    """Kill a measurement of a run at random moments, then give it again: its table is that of one never killed."""
    words, name = MEASUREMENTS[which]
    folder = kattn.folder / which
    folder.mkdir()
    recipe = write_tiny("images", folder)
    kattn.must("train", recipe, "--results", folder / "truth", "-q")
    taken = kattn.must(*words, "--results", folder / "truth").seconds
    for number in range(rounds):
        draw, results = chance(seed, which, number), folder / str(number)
        kattn.must("train", recipe, "--results", results, "-q")
        for _ in range(draw.randint(1, 3)):
            running = kattn.start(*words, "--results", results)
            if not running.ended(draw.uniform(0, 1.1 * taken)):
                running.kill()
            running.said()
        said = kattn.run(*words, "--results", results)
        same = rows(results / "tiny/0" / name) == rows(folder / "truth/tiny/0" / name)
        yield judged(PART, f"{which}, again after kills", said, "" if same else "lost")
