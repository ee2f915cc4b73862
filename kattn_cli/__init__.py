"""kattn: kernel views of attention, trained, evaluated, attacked and measured under one protocol.

``import kattn_cli as kattn`` imports nothing heavy: each name below is loaded when it is asked for.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from kattn_cli.api.attention import attention as Attention
    from kattn_cli.api.attention import swap
    from kattn_cli.api.comparing import compare
    from kattn_cli.api.costs import complexity
    from kattn_cli.api.measuring import attack, audit, evaluate, spectrum
    from kattn_cli.api.runs import Run, runs
    from kattn_cli.api.training import train
    from kattn_cli.errors import KattnError

__version__ = "0.1.0"
__all__ = [
    "Attention",
    "KattnError",
    "Run",
    "attack",
    "audit",
    "compare",
    "complexity",
    "evaluate",
    "runs",
    "spectrum",
    "swap",
    "train",
]
_PLACES = {
    "Attention": "api.attention:attention",
    "KattnError": "errors:KattnError",
    "Run": "api.runs:Run",
    "attack": "api.measuring:attack",
    "audit": "api.measuring:audit",
    "compare": "api.comparing:compare",
    "complexity": "api.costs:complexity",
    "evaluate": "api.measuring:evaluate",
    "runs": "api.runs:runs",
    "spectrum": "api.measuring:spectrum",
    "swap": "api.attention:swap",
    "train": "api.training:train",
}
"""Public name → its file and its name there."""


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    file, _, what = _PLACES[name].partition(":")
    return getattr(import_module(f"{__name__}.{file}"), what)


def __dir__() -> list[str]:
    return [*__all__, "__version__"]


class _Room(ModuleType):
    """A room whose name is a public function's, too: ``kattn.runs()``, and ``from kattn_cli.runs import find``."""

    def __call__(self, *args: Any, **options: Any) -> Any:
        return __getattr__(self.__name__.rpartition(".")[2])(*args, **options)


class _Package(ModuleType):
    def __setattr__(self, name: str, value: Any) -> None:
        """Python binds a room that was imported in place of the function, which it must not hide."""
        if name in _PLACES and type(value) is ModuleType:
            value.__class__ = _Room
        super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package
