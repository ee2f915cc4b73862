"""What the Primal-Attention paper claims, and the talk."""

from __future__ import annotations

from kattn_cli.papers.primal.claims import accuracy, cost, kernel_svd

CLAIMS = [*kernel_svd.CLAIMS, *accuracy.CLAIMS, *cost.CLAIMS]
