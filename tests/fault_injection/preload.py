"""All of kattn, imported once, so that a command forked from this process begins at once."""

from __future__ import annotations

import importlib
import pkgutil

import kattn_cli

LEFT_OUT = ("__main__", "triton", "ray", "slurm")
"""What begins work when it is imported, or is not installed everywhere."""

for _module in pkgutil.walk_packages(kattn_cli.__path__, "kattn_cli.", onerror=lambda name: None):
    if not any(part in _module.name for part in LEFT_OUT):
        try:
            importlib.import_module(_module.name)
        except ImportError:  # of an extra that is not installed
            continue
