"""Pathfinder and Path-X of Long-Range Arena."""

from __future__ import annotations

from kattn_cli.data.sets.pathfinder.data_set import Pathfinder

__all__ = ["Pathfinder"]
