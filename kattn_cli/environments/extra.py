"""The packages of the optional extra ``control``."""

from __future__ import annotations

from importlib.util import find_spec

from kattn_cli.errors import KattnError


def require_control(purpose: str, *packages: str) -> None:
    """Whether ``packages`` can be imported; ``purpose`` begins the line that is said otherwise.

    Raises:
        KattnError: naming those that are not installed, and the command that installs them.
    """
    if absent := [package for package in packages if find_spec(package) is None]:
        verb = "is" if len(absent) == 1 else "are"
        raise KattnError(
            f"{purpose} needs {' and '.join(absent)}, which {verb} not installed: pip install 'kattn[control]'"
        )
