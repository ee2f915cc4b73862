"""Where a group's numbers come from: commits, versions, machines, commands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from kattn_cli.report.groups import Group
from kattn_cli.report.page import Block, Part
from kattn_cli.runs.run import Run
from kattn_cli.tables.text import Table, code, escaped, listed

SHORT = 8
"""Letters of a commit."""
Record = Mapping[str, Any]


def records(run: Run) -> list[Record]:
    """Return the records of the training and of each later measurement."""
    manifest = run.manifest
    return [manifest, *(one for one in manifest.get("measurements") or [] if isinstance(one, Mapping))]


def commits(known: Iterable[Record]) -> list[str]:
    """Return the commits, short, each once."""
    return _distinct(str(one["commit"])[:SHORT] for one in known if one.get("commit"))


def machines(known: Iterable[Record]) -> list[str]:
    """Return ``cpu: AMD EPYC, 2 cores``, each once."""
    return _distinct(_machine(one) for one in known if one.get("machine") or one.get("device"))


def provenance_part(group: Group) -> Part:
    """Return the part with a row for each label, what is to be noted, and the commands."""
    by_label = {label: [one for run in runs for one in records(run)] for label, runs in group.by_label.items()}
    everything = [one for part in by_label.values() for one in part]
    commands = _distinct(str(one["command"]) for one in everything if one.get("command"))
    shared, differing = _versions(everything)
    rows = []
    for label, part in by_label.items():
        runs = group.by_label[label]
        rows.append(
            [
                label,
                listed([str(run.seed) for run in runs]),
                ", ".join(commits(part)) or "unknown",
                "yes" if any(one.get("dirty") for one in part) else "no",
                *(["; ".join(_version(part, package) for package in differing)] if differing else []),
                "; ".join(machines(part)),
                _span(part),
                ", ".join(str(commands.index(str(one)) + 1) for one in _distinct(one.get("command") for one in part)),
            ]
        )
    columns = ["", "seeds", "commits", "dirty", *(["versions that differ"] if differing else [])]
    columns += ["device and machine", "from … to (UTC)", "commands"]
    caption = f"{group.name}, provenance of trainings and measurements; commands are numbered below."
    table = Table(f"{group.slug}-provenance", caption, columns, rows, len(columns))
    return Part("Provenance", [*_flags(group, by_label), table, *_listed(shared, commands)])


def _flags(group: Group, by_label: Mapping[str, Sequence[Record]]) -> Iterator[Block]:
    dirty = [label for label, part in by_label.items() if any(one.get("dirty") for one in part)]
    if dirty:
        yield f"**Dirty:** changes that were not committed are in what ran for {escaped(listed(dirty, 8))}."
    trained = commits(run.manifest for run in group.runs)
    if len(trained) > 1:
        yield f"**Several commits** trained these runs: {escaped(', '.join(trained))}."


def _listed(shared: str, commands: Sequence[str]) -> Iterator[Block]:
    if shared:
        yield f"Versions of all: {escaped(shared)}."
    if commands:
        yield "\n".join(f"{number}. {code(command)}" for number, command in enumerate(commands, 1))


def _versions(every: Sequence[Record]) -> tuple[str, list[str]]:
    """Return the versions that all share, as text, and the packages whose versions differ."""
    known = [one["versions"] for one in every if one.get("versions")]
    packages = _distinct(package for one in known for package in one)
    differing = [package for package in packages if len({one.get(package) for one in known}) > 1]
    first = known[0] if known else {}
    return ", ".join(f"{one} {first[one]}" for one in packages if one not in differing), differing


def _version(known: Sequence[Record], package: str) -> str:
    numbers = _distinct(str((one.get("versions") or {}).get(package, "–")) for one in known)
    return f"{package} {' and '.join(numbers)}"


def _machine(one: Record) -> str:
    machine = one.get("machine") or {}
    parts = [machine.get("processor"), f"{machine['cores']} cores" if machine.get("cores") else None]
    return f"{one.get('device', 'device unknown')}: {', '.join(part for part in parts if part) or 'machine unknown'}"


def _span(known: Sequence[Record]) -> str:
    moments = sorted(str(one[key]) for one in known for key in ("start", "end") if one.get(key))
    if not moments:
        return ""
    first, last = moment(moments[0]), moment(moments[-1])
    return first if first == last else f"{first} … {last}"


def moment(text: str) -> str:
    """Return ``2026-11-21 09:04`` of a time in ISO 8601."""
    return text[:16].replace("T", " ")


def _distinct(values: Iterable[Any]) -> list[str]:
    return list(dict.fromkeys(str(value) for value in values if value))
