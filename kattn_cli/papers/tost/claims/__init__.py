"""What the ToST paper claims."""

from __future__ import annotations

from kattn_cli.papers.tost.claims import accuracy, compression, cost, foreground

CLAIMS = [*compression.CLAIMS, *foreground.CLAIMS, *accuracy.CLAIMS, *cost.CLAIMS]
