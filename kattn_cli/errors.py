"""What kattn says when its input is at fault. Anything else that escapes is a bug and keeps its traceback."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager


class KattnError(Exception):
    """A fault the user can mend; its text is printed as it is, without a traceback, and kattn exits with 2."""


class RecipeError(KattnError):
    """A recipe that cannot be read, or that asks for something that does not exist."""


class DataError(KattnError):
    """A data set that is missing, damaged, or other than its recipe counts on."""


class RunError(KattnError):
    """A run that does not exist or cannot be used."""


class NothingToDraw(RunError):
    """A table without a measurement that could be drawn."""


class CheckpointError(KattnError):
    """A checkpoint that is missing, cut short, or made by another recipe."""


class TrainingError(KattnError):
    """A training that cannot go on, for instance because its loss is no longer a number."""


class Stopped(Exception):
    """The user stopped a command; what was kept is in the text, and ``code`` is the exit code to leave with."""

    def __init__(self, message: str, code: int = 130) -> None:
        super().__init__(message)
        self.code = code


_NO_MEMORY = re.compile(r"can.t (allocate memory|start new thread)|cannot allocate memory|failed to map segment", re.I)


def is_out_of_memory(error: BaseException) -> bool:
    """Return whether the system, a limit on it or a device refused memory or a thread, whatever words that has."""
    of_torch = type(error).__name__ == "OutOfMemoryError"  # by name, since this module never imports torch
    return of_torch or isinstance(error, MemoryError) or bool(_NO_MEMORY.search(str(error)))


@contextmanager
def stoppable(kept: str) -> Iterator[None]:
    """Turn Ctrl-C into :class:`Stopped`, which says what was ``kept``."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped(f"Stopped; {kept}") from None


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """``'; did you mean "depth"?'`` for the nearest of ``choices``, or an empty string where none is near."""
    near = difflib.get_close_matches(word, list(choices), n=1)
    return f'; did you mean "{near[0]}"?' if near else ""
