"""Ours beside the papers': an engine, and a folder for each paper. Never imports torch.

A paper is a :class:`~kattn_cli.papers.paper.Paper` in :data:`PAPERS`. ``described`` says which model and task of the
papers a run is of, ``values`` reads the runs' numbers in their words, ``beside`` puts them into their tables, and
``text`` writes those. A ``claim`` is judged from ``evidence`` to a ``verdict``, and ``page`` writes all of them.
``plan`` says how to make a table again, ``costs`` what the papers print of whole models' costs.
"""

from __future__ import annotations

from kattn_cli.papers import primal, rpc, tost
from kattn_cli.papers.paper import Paper

PAPERS: dict[str, Paper] = {
    "rpc": rpc.PAPER,
    "primal": primal.PAPER,
    "tost": tost.PAPER,
}
"""By name, in the order in which pages and lists have them."""
