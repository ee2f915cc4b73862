"""Where data sets lie on disk unless their recipe says otherwise."""

from __future__ import annotations

import os
from pathlib import Path


def default_root(name: str) -> Path:
    """``$KATTN_DATA/<name>``, or ``~/.cache/kattn/<name>`` where that variable is not set."""
    base = os.environ.get("KATTN_DATA")
    return (Path(base).expanduser() if base else Path.home() / ".cache" / "kattn") / name
