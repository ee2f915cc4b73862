"""Its one table: accuracy on digits."""

from __future__ import annotations

from kattn_cli.papers.beside import ImageTable, PaperTable

TABLES: list[PaperTable] = [
    ImageTable("Table 1: digits", ("table1",), {"clean": ("top1",)}, rows={"IN-1K": "Digits"}),
]
