"""Python calls in the manifests of what they train and measure."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

from kattn_cli.runs.provenance import called

P = ParamSpec("P")
R = TypeVar("R")
LONGEST = 200
"""Letters of an argument; what is longer, such as a model or many runs, is cut."""


def recorded(function: Callable[P, R]) -> Callable[P, R]:
    """Return the same function, whose call is then the ``command`` of manifests."""

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        given = [*map(_short, args), *(f"{name}={_short(value)}" for name, value in options.items())]
        with called(f"kattn.{function.__name__}({', '.join(given)})"):
            return function(*args, **options)

    return call


def _short(value: object) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[:LONGEST]}…"
