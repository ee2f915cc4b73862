"""What the RPC-Attention paper claims."""

from __future__ import annotations

from kattn_cli.papers.rpc.claims import cost, images, kernel, language, pursuit

CLAIMS = [*kernel.CLAIMS, *pursuit.CLAIMS, *images.CLAIMS, *language.CLAIMS, *cost.CLAIMS]
