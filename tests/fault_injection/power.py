"""Power that fails: what a training wrote is replayed as a disk may have it then, and the training goes on from there.

A disk has of a file what was there at its last fsync, or nothing; of a folder the names that it had at the folder's
last fsync, and of later changes the first few, in their order. That is all that POSIX promises; file systems with a
journal keep more.
"""

from __future__ import annotations

import os
import pickle
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, BinaryIO

from tiny_tasks import write_tiny

from fault_injection.case import Case, chance, judged
from fault_injection.commands import Kattn
from fault_injection.runs import difference

Event = tuple[str, ...]
"""``("made", path)``, ``("folder", path)``, ``("moved", from, to)``, ``("linked", from, to)``, ``("gone", path)``,
``("synced", path, content)``, ``("synced folder", path)``, ``("opened to cut", path)``; ``content`` names a file."""
STATE = "resume.pt"


def failures(kattn: Kattn, times: int, seed: int) -> Iterator[Case]:
    """Let the power fail at random moments of one training, each moment from what was written until then."""
    folder = kattn.folder / "power"
    folder.mkdir()
    recipe = write_tiny("sequences", folder)
    truth, journal = folder / "truth", folder / "journal"
    journal.mkdir()
    truth.mkdir()
    said = kattn.run("train", recipe, "--results", truth, "-q", first=partial(record, truth, journal))
    assert said.verdict == "ok", said.err
    events = read(journal)
    assert any(event[0] == "synced" for event, _ in events), "nothing was recorded"
    for number in range(times):
        draw = chance(seed, "power", number)
        at = draw.randint(1, len(events))
        results = folder / f"after-{number}"
        _build(results, disk_after(events[:at], truth, draw))
        gone = _kept_state(events[:at], truth) and not list(results.glob(f"tiny/0/checkpoints/*{STATE}"))
        said = kattn.run("train", recipe, "--resume", "--results", results, "-q")
        fault = difference(results / "tiny/0", truth / "tiny/0") or ("the state was gone" if gone else "")
        yield judged("power failures", f"after event {at} of {len(events)}; {fault}", said, "lost" if fault else "")


def record(root: Path, journal: Path) -> None:
    """From now on, write all that this process does to names and files below ``root`` into ``journal``."""
    recorder = _Recorder(root, journal, (journal / "events").open("ab"))
    sys.addaudithook(recorder.audited)
    synchronise = os.fsync

    def fsync(descriptor: Any) -> None:
        synchronise(descriptor)
        recorder.synced(descriptor)

    os.fsync = fsync  # type: ignore[assignment]


@dataclass
class _Recorder:
    root: Path
    journal: Path
    events: BinaryIO
    contents: int = 0

    def audited(self, event: str, arguments: tuple[Any, ...]) -> None:
        """What Python is about to do."""
        if event == "open":
            path, _, flags = arguments
            if isinstance(path, str | os.PathLike | bytes) and (flags & os.O_CREAT or flags & os.O_TRUNC):
                self._note("made", path)
                if flags & os.O_TRUNC:
                    self._note("opened to cut", path)
        elif event == "os.mkdir":
            self._note("folder", arguments[0])
        elif event in ("os.rename", "os.link"):
            self._note({"os.rename": "moved", "os.link": "linked"}[event], arguments[0], arguments[1])
        elif event in ("os.remove", "os.rmdir"):
            path, descriptor = arguments
            self._note(
                "gone", path if descriptor in (-1, None) else Path(f"/proc/self/fd/{descriptor}").readlink() / path
            )

    def synced(self, descriptor: Any) -> None:
        """What is on disk from now on."""
        number = descriptor if isinstance(descriptor, int) else descriptor.fileno()
        path = Path(f"/proc/self/fd/{number}").readlink()
        if path.is_dir():
            self._note("synced folder", path)
        elif path.is_relative_to(self.root):
            content = self.journal / str(self.contents)
            self.contents += 1
            content.write_bytes(path.read_bytes())
            self._note("synced", path, content.name)

    def _note(self, what: str, *names: Any) -> None:
        texts = [os.path.abspath(os.fsdecode(names[0])), *(os.fsdecode(one) for one in names[1:])]
        if what in ("moved", "linked"):
            texts[1] = os.path.abspath(texts[1])
        if Path(texts[0]).is_relative_to(self.root) or texts[0] == str(self.root):
            self.events.write(pickle.dumps((what, *texts)))
            self.events.flush()


def read(journal: Path) -> list[tuple[Event, bytes]]:
    """Return what was recorded, each event with the content that it made safe."""
    events: list[tuple[Event, bytes]] = []
    with (journal / "events").open("rb") as file:
        while True:
            try:
                event = pickle.load(file)
            except EOFError:
                return events
            events.append((event, (journal / event[2]).read_bytes() if event[0] == "synced" else b""))


@dataclass
class _Node:
    """A file or folder, whatever its names."""

    folder: bool
    synced: int = -1
    """When it was made safe for the last time."""
    content: bytes = b""
    cut: bool = False
    """Whether a file was opened to be written anew since then."""
    entries: dict[str, _Node] = field(default_factory=dict)


@dataclass(frozen=True)
class _Change:
    """A change of names: ``node`` gets a ``name`` in ``folder``, and loses one; atomic, as POSIX has it."""

    at: int
    folder: _Node
    name: str
    node: _Node | None
    left: tuple[_Node, str] | None = None


def disk_after(events: Sequence[tuple[Event, bytes]], root: Path, draw: Random) -> dict[str, bytes | None]:
    """Return what a disk may have below ``root`` when the power fails after ``events``: None for a folder."""
    top = _Node(folder=True)
    seen: dict[str, _Node] = {str(root): top}
    changes: list[_Change] = []
    for at, (event, content) in enumerate(events):
        if change := _happened(at, event, content, seen):
            changes.append(change)
    last = len(events)
    until: dict[int, int] = {}
    for change in changes:
        until.setdefault(id(change.folder), draw.randint(change.folder.synced, last))
    for change in changes:
        if change.at > until[id(change.folder)]:
            continue
        if change.left:
            change.left[0].entries.pop(change.left[1], None)
        if change.node:
            change.folder.entries[change.name] = change.node
        else:
            change.folder.entries.pop(change.name, None)
    return dict(_below(top, "", draw))


def _happened(at: int, event: Event, content: bytes, seen: dict[str, _Node]) -> _Change | None:
    """Follow one event as a running system sees it; return the change of names that it makes, if any."""
    what, path = event[0], event[1]
    node, parent, name = seen.get(path), seen.get(os.path.dirname(path)), os.path.basename(path)
    if what in ("synced", "synced folder") and node:
        node.synced, node.cut = at, False
        node.content = content
    elif what == "opened to cut" and node:
        node.cut = True
    elif what in ("made", "folder", "synced") and not node and parent:
        seen[path] = _Node(what == "folder", content=content)
        return _Change(at, parent, name, seen[path])
    elif what == "gone" and node and parent:
        del seen[path]
        return _Change(at, parent, name, None)
    elif what in ("moved", "linked") and node and parent:
        to = event[2]
        folder = seen[os.path.dirname(to)]
        if what == "moved":
            for below in [one for one in seen if one == path or one.startswith(f"{path}/")]:
                seen[to + below[len(path) :]] = seen.pop(below)
        seen[to] = node
        return _Change(at, folder, os.path.basename(to), node, (parent, name) if what == "moved" else None)
    return None


def _below(folder: _Node, path: str, draw: Random) -> Iterator[tuple[str, bytes | None]]:
    for name, node in folder.entries.items():
        inner = f"{path}/{name}".lstrip("/")
        if node.folder:
            yield inner, None
            yield from _below(node, inner, draw)
        else:
            yield inner, b"" if node.cut and draw.random() < 0.5 else node.content


def _kept_state(events: Sequence[tuple[Event, bytes]], root: Path) -> bool:
    """Return whether a state had been saved when the power failed: the folder that has it was made safe after it."""
    saved = False
    for (event, _), (after, _) in pairwise(events):
        saved |= event[0] == "moved" and event[2].endswith(f"/{STATE}") and after[0] == "synced folder"
    return saved


def _build(folder: Path, disk: Mapping[str, bytes | None]) -> None:
    folder.mkdir()
    for name, content in disk.items():
        path = folder / name
        if content is None:
            path.mkdir(parents=True, exist_ok=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(content)
