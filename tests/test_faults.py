"""kattn when the machine fails it: a few faults of each part of ``faults.py``, and hundreds with ``-m faults``."""

from __future__ import annotations

import os
import random
import secrets
from pathlib import Path

import pytest
from fault_injection.case import Case, table
from fault_injection.power import Event, disk_after
from faults import PARTS, tried

SAMPLE = 0.04
"""Of the faults that ``make faults`` tries."""


@pytest.mark.parametrize("part", PARTS)
def test_a_sample(part: str, tmp_path: Path) -> None:
    """Of one seed, so that it says something of the change that is tested; other faults are for ``make faults``."""
    _hold(tried(tmp_path, part, SAMPLE, seed=0))


@pytest.mark.faults
@pytest.mark.parametrize("part", PARTS)
def test_all(part: str, tmp_path: Path) -> None:
    seed = int(os.environ.get("KATTN_FAULTS_SEED", secrets.randbelow(10**6)))
    print(f"seed {seed}")
    _hold(tried(tmp_path, part, 1.0, seed))


def _hold(cases: list[Case]) -> None:
    assert cases
    bad = [f"{case.verdict}: {case.what}\n{case.said}" for case in cases if not case.good]
    assert not bad, "\n".join(bad)


WRITTEN: list[tuple[Event, bytes]] = [
    (("folder", "/r/run"), b""),
    (("made", "/r/run/.new/a"), b""),
    (("folder", "/r/run/.new"), b""),
    (("made", "/r/run/.new/a"), b""),
    (("synced", "/r/run/.new/a", "0"), b"first"),
    (("moved", "/r/run/.new/a", "/r/run/a"), b""),
    (("synced folder", "/r/run"), b""),
    (("synced folder", "/r"), b""),
    (("opened to cut", "/r/run/a"), b""),
    (("made", "/r/run/b"), b""),
]


def test_what_is_on_a_disk_after_the_power_failed() -> None:
    """What was made safe is there; of the rest, any part that came first."""
    draws = [random.Random(number) for number in range(200)]
    after = [disk_after(WRITTEN[:6], Path("/r"), draw) for draw in draws]
    assert {frozenset(disk) for disk in after} == {
        frozenset(names)
        for names in ([], ["run"], ["run", "run/.new"], ["run", "run/.new", "run/.new/a"], ["run", "run/.new", "run/a"])
    }
    assert {disk.get("run/.new/a") for disk in after} == {None, b"first"}
    safe = [disk_after(WRITTEN[:8], Path("/r"), draw) for draw in draws]
    assert all(disk["run/a"] == b"first" for disk in safe)
    cut = [disk_after(WRITTEN, Path("/r"), draw) for draw in draws]
    assert {disk["run/a"] for disk in cut} == {b"", b"first"}, "it was opened to be written anew"
    assert {disk.get("run/b") for disk in cut} == {None, b""}, "nothing was said to be safe of it"


def test_counts() -> None:
    """The table that is printed says what was tried."""
    rows = table([Case("kills", "a", "ok"), Case("kills", "b", "lost"), Case("disks", "c", "refused")])
    assert [(row["part"], row["tried"], row["ok"], row["lost"], row["refused"]) for row in rows] == [
        ("kills", 2, 1, 1, 0),
        ("disks", 1, 0, 0, 1),
    ]
