"""ListOps of Long-Range Arena."""

from __future__ import annotations

from kattn_cli.data.sets.listops.data_set import ListOps

__all__ = ["ListOps"]
