"""What an executor is: something that does the same work with many tasks, elsewhere, and says how each one went."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from kattn_cli.errors import KattnError, Stopped
from kattn_cli.training.interrupt import Interruption

TICK = 0.5
"""Seconds after which an executor that has nothing to tell yields all the same."""

Work = Callable[[Any], Any]
"""A function at the top of a module: it travels by its name, its task and what it returns by value."""


@dataclass(frozen=True)
class Request:
    """What the work needs.

    ``jobs``: so many tasks at once; ``cpus``, ``gpus``: for each of them; ``folder``: for an executor's own files, on a
    file system that all machines share; ``settings``: an executor's own; ``address``: a cluster's.
    """

    jobs: int = 1
    cpus: int = 1
    gpus: int = 0
    folder: Path = Path(".")
    settings: Mapping[str, Any] = field(default_factory=dict)
    address: str | None = None


@dataclass(frozen=True)
class Outcome:
    """How one task went: what the work returned, or why it did not.

    ``error``: what the work raised, if that is meant for users; ``traceback``: of anything else, a bug.
    """

    value: Any = None
    error: KattnError | Stopped | None = None
    traceback: str = ""

    @property
    def reason(self) -> str:
        """Return in one line why there is no value; empty where there is one."""
        message = str(self.error) if self.error else self.traceback.strip().rpartition("\n")[2]
        return " ".join(message.split())


class Executor(Protocol):
    """See :meth:`run`."""

    def __init__(self, request: Request) -> None: ...

    def run(self, work: Work, tasks: Iterable[Any], interruption: Interruption) -> Iterator[tuple[int, Outcome] | None]:
        """Yield number and outcome of ``work(task)`` for each task as they come, and None every :data:`TICK` seconds.

        Tasks fail alone. Once ``interruption`` has a signal, nothing more is begun and what is at work is asked to
        stop as after Ctrl-C; tasks that were not begun have no outcome.

        Raises:
            KattnError: if the executor itself cannot do what it was asked to.
        """
        ...


def attempt(work: Work, task: Any) -> Outcome:
    """Do the work, and return what it returns or raises as something that can travel."""
    try:
        return Outcome(work(task))
    except (KattnError, Stopped) as error:
        return Outcome(error=error)
    except Exception:
        return Outcome(traceback=traceback.format_exc())


def optional(module: str, option: str, extra: str) -> Any:
    """Return a package that not everybody has.

    Raises:
        KattnError: if it is not installed, with the command that installs it.
    """
    try:
        return import_module(module)
    except ImportError:
        raise KattnError(f"{option}: needs a package that is not installed: pip install 'kattn[{extra}]'") from None
