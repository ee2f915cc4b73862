"""What a study said when it began: kept with its date, so that a change afterwards can be seen on its page."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from difflib import unified_diff
from itertools import pairwise
from pathlib import Path

import yaml

from kattn_cli.errors import RunError
from kattn_cli.runs.csv_rows import changing
from kattn_cli.runs.provenance import now, provenance
from kattn_cli.runs.whole_file import make_folder, write_text
from kattn_cli.studies.study import Study

REGISTERED = "registered.json"


@dataclass(frozen=True)
class Registration:
    """One wording of a study. ``date``: when it was first run so, in UTC; ``commit``: of the code that ran it."""

    digest: str
    date: str
    commit: str | None
    text: str

    @classmethod
    def of(cls, study: Study) -> Registration:
        """Return the study as it is now."""
        return cls(study.digest, now(), provenance("")["commit"], as_text(study))


def as_text(study: Study) -> str:
    """Return all that a study says, as YAML in one order."""
    said = study.model_dump(exclude_defaults=True)
    return yaml.safe_dump(said, sort_keys=False, allow_unicode=True, width=100)


def register(study: Study, folder: Path) -> list[Registration]:
    """Return every wording under which a study was run, oldest first; the present one is kept if it is new.

    Args:
        folder: of the study's results.

    Raises:
        RunError: if what was kept cannot be read.
    """
    path = folder / REGISTERED
    make_folder(folder)
    with changing(path):
        known = registrations(folder)
        if not known or known[-1].digest != study.digest:
            known.append(Registration.of(study))
            write_text(path, json.dumps([asdict(one) for one in known], indent=2, ensure_ascii=False) + "\n")
    return known


def registrations(folder: Path) -> list[Registration]:
    """Return every wording that was kept, oldest first; none of a study that was never run.

    Raises:
        RunError: if they cannot be read.
    """
    path = folder / REGISTERED
    try:
        return [Registration(**one) for one in json.loads(path.read_text(encoding="utf-8"))]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror or error}") from None
    except (ValueError, TypeError, RecursionError):
        raise RunError(f"{path}: is damaged: it does not hold what the study said when it began") from None


def changes(known: Sequence[Registration]) -> list[tuple[Registration, str]]:
    """Return each later wording with what it changed, as a unified diff."""
    return [(later, _difference(earlier, later)) for earlier, later in pairwise(known)]


def _difference(earlier: Registration, later: Registration) -> str:
    before, after = (one.text.splitlines(keepends=True) for one in (earlier, later))
    return "".join(unified_diff(before, after, f"registered {earlier.date}", f"registered {later.date}", n=1))
