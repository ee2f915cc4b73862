"""A paper's tables with ours in them, on the console."""

from __future__ import annotations

from collections.abc import Sequence

from kattn_cli.console import console, print_wide
from kattn_cli.papers.paper_sections import Section


def print_sections(sections: Sequence[Section]) -> None:
    """Print each with its title, table and sentences."""
    for section in sections:
        console.print(f"\n{section.title}\n", markup=False)
        print_wide(section.columns, section.rows)
        for line in (*section.notes, *section.sentences):
            console.print(f"- {line}", markup=False)
    console.print()
