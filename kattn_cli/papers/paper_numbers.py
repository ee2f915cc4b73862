"""Our numbers beside those of one paper: images and sequences, in one table and as text."""

from __future__ import annotations

from collections.abc import Collection, Sequence

import pandas as pd

from kattn_cli.papers.image_sections import image_sections
from kattn_cli.papers.paper_sections import Section
from kattn_cli.papers.paper_tables import paper_tables
from kattn_cli.papers.published import PaperName
from kattn_cli.papers.sequence_runs import is_sequence_run
from kattn_cli.papers.sequence_sections import sequence_sections
from kattn_cli.papers.sequence_tables import sequence_tables
from kattn_cli.runs.run import Run

COLUMNS = ["paper_name", "table", "row", "metric", "setting", "measured", "share", "label", "model"]
COLUMNS += ["mean", "low", "high", "seeds", "paper", "baseline"]
COLUMNS += ["difference", "difference_low", "difference_high", "pairs", "verdict", "paper_difference", "differs"]


def paper_numbers(
    runs: Sequence[Run], paper: PaperName, tables: Collection[str] = ()
) -> tuple[pd.DataFrame, list[Section]]:
    """One row for each number of the paper's tables that the runs have, and each label; and each table as text.

    The table is empty, and there are no sections, where the runs have none of the paper's numbers. Its columns are
    :data:`COLUMNS`: ``row`` is the paper's, ``setting`` what was run in its place, ``differs`` in what that is not the
    paper's, empty where it is; ``paper`` the paper's own number and ``paper_difference`` its difference from its
    baseline; see :func:`~kattn_cli.papers.paper_tables.paper_tables` and
    :func:`~kattn_cli.papers.sequence_tables.sequence_tables`. Labels lose the folder that all runs on images share, or
    all on sequences.

    Args:
        tables: the paper's tables to keep, such as ``table2``; all where none is named.
    """
    of_sequences = {str(run.folder) for run in runs if is_sequence_run(run)}
    images = paper_tables([run for run in runs if str(run.folder) not in of_sequences], paper, tables)
    sequences = sequence_tables([run for run in runs if str(run.folder) in of_sequences], paper, tables)
    found = [one for one in (images, sequences) if len(one)]
    joined = pd.concat(found, ignore_index=True).assign(paper_name=paper) if found else pd.DataFrame()
    joined = joined.reindex(columns=COLUMNS)
    joined["measured"], joined["share"] = joined["measured"].fillna(""), joined["share"].fillna(0.0)
    return joined, [*image_sections(images, paper), *sequence_sections(sequences, paper)]
