"""What kattn does when the machine fails it: kills, damaged files, full disks, others at work, power that fails.

    python tests/faults.py FOLDER [--seed 7] [--only kills …] [--scale 0.1] [--jobs 2]

Each fault is done to a tiny run of its own below FOLDER, by commands as a user types them. A command must do what it
is asked to, or say in a line why it cannot: no traceback, no other numbers in silence, nothing lost that was written,
nothing left that counts as a run. ``faults.csv`` there counts what was tried and what came of it, a row a part;
``bad.txt`` has what kattn said where that was wrong. The seed varies, and is printed; the same one repeats the draws.

Another version of kattn is tried with its checkout first on PYTHONPATH.
"""

from __future__ import annotations

import argparse
import csv
import secrets
import shutil
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain
from pathlib import Path

from fault_injection import damage, disk, kills, others, power
from fault_injection.case import Case, chance, table
from fault_injection.commands import Kattn

Part = Callable[[Kattn, float, int], Iterator[Case]]
"""Takes where to work, how much of the whole to try, and the seed."""


def _times(whole: int, scale: float) -> int:
    return max(1, round(whole * scale))


def _kills(kattn: Kattn, scale: float, seed: int) -> Iterator[Case]:
    cheap = [name for name, kind in kills.KINDS.items() if not kind.dear]
    dear = [name for name, kind in kills.KINDS.items() if kind.dear and scale >= 1]
    for name in chance(seed, "kinds").sample(cheap, _times(len(cheap), min(1, 6 * scale))) + dear:
        yield from kills.trainings(kattn, name, _times(1 if name in dear else 5, scale), seed)


def _killed_measurements(kattn: Kattn, scale: float, seed: int) -> Iterator[Case]:
    for name in chance(seed, "measured").sample(sorted(kills.MEASUREMENTS), _times(3, min(1, 6 * scale))):
        yield from kills.measurements(kattn, name, _times(5, scale), seed)


def _damaged(try_them: Callable[[Kattn, int, int], Iterator[Case]], whole: int) -> Part:
    return lambda kattn, scale, seed: try_them(kattn, _times(whole, scale), seed)


def _full_disks(kattn: Kattn, scale: float, seed: int) -> Iterator[Case]:
    return chain(disk.full(kattn, _times(50, scale), seed), disk.read_only(kattn))


def _concurrency(kattn: Kattn, scale: float, seed: int) -> Iterator[Case]:
    yield from others.measurements(kattn, _times(25, scale))
    yield from others.trainings(kattn, _times(5, scale))
    yield from others.resumptions(kattn, _times(5, scale))
    yield from others.readers(kattn, _times(30, scale), seed)


PARTS: dict[str, Part] = {
    "kills": _kills,
    "killed measurements": _killed_measurements,
    "runs": _damaged(damage.runs, 250),
    "states": _damaged(damage.states, 60),
    "data": _damaged(damage.data, 130),
    "recipes": _damaged(damage.recipes, 220),
    "users": lambda kattn, scale, seed: damage.users_files(kattn),
    "disks": _full_disks,
    "concurrency": _concurrency,
    "power": _damaged(power.failures, 80),
}


def tried(folder: Path, part: str, scale: float, seed: int) -> list[Case]:
    """Try one part in a folder of its own, which is gone afterwards."""
    begun = time.monotonic()
    work = (folder / part.replace(" ", "-")).absolute()
    shutil.rmtree(work, ignore_errors=True)
    cases: list[Case] = []
    try:
        cases.extend(PARTS[part](Kattn(work), scale, seed))
    except AssertionError as error:  # what nothing disturbs fails all the same
        cases.append(Case(part, "undisturbed", "traceback", str(error)))
    shutil.rmtree(work, ignore_errors=True)
    bad = sum(not case.good for case in cases)
    print(f"{part}: {len(cases)} tried, {bad} bad, {time.monotonic() - begun:.0f} s", flush=True)
    return cases


def write(folder: Path, cases: Iterable[Case], seed: int) -> None:
    """Write ``faults.csv`` and ``bad.txt``."""
    cases = list(cases)
    counted = table(cases)
    everything = {key: sum(int(str(row[key])) for row in counted) for key in counted[0] if key != "part"}
    lines: list[dict[str, object]] = [{**row, "seed": seed} for row in [*counted, {"part": "all", **everything}]]
    with (folder / "faults.csv").open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(lines[0]))
        writer.writeheader()
        writer.writerows(lines)
    bad = [f"{case.verdict}: {case.part}: {case.what}\n{case.said}\n" for case in cases if not case.good]
    (folder / "bad.txt").write_text("\n".join(bad), encoding="utf-8")


def main() -> None:
    """Try the parts that are asked for, several at a time."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--scale", type=float, default=1.0)
    parser.add_argument("--jobs", type=int, default=2)
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    print(f"seed {given.seed}", flush=True)
    cases: list[Case] = []
    with ThreadPoolExecutor(given.jobs) as pool:
        for found in pool.map(partial(tried, given.folder, scale=given.scale, seed=given.seed), given.only):
            cases += found
            write(given.folder, cases, given.seed)
    print((given.folder / "faults.csv").read_text(encoding="utf-8"), end="")
    sys.exit(any(not case.good for case in cases))


if __name__ == "__main__":
    main()
