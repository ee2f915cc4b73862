"""What the three papers claim, and what the tables of our runs say of it. Never imports torch.

A claim is judged by a function from the :class:`~kattn_cli.papers.evidence.Evidence` to its findings, one for each
label that has what it takes; none where it was not measured. One folder a paper.
"""

from __future__ import annotations

from kattn_cli.papers.primal import claims as primal
from kattn_cli.papers.rpc import claims as rpc
from kattn_cli.papers.tost import claims as tost

PAPERS = (rpc.PAPER, primal.PAPER, tost.PAPER)
