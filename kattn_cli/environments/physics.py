"""What MuJoCo has to say: each warning once, and on stderr, not for every environment and in a file of its own."""

from __future__ import annotations

import sys
from functools import cache
from importlib.util import find_spec


def warn_once() -> None:
    """From now on in this process and those that it forks; nothing to do where MuJoCo is not installed."""
    if find_spec("mujoco"):
        import mujoco

        mujoco.set_mju_user_warning(_tell)


@cache
def _tell(message: str) -> None:
    print(f"MuJoCo: {message}", file=sys.stderr)
