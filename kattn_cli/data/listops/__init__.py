"""ListOps of Long-Range Arena."""

from __future__ import annotations

from kattn_cli.data.listops.data_set import ListOps

__all__ = ["ListOps"]
