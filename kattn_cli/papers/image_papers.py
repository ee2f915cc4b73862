"""The tables of images of each paper."""

from __future__ import annotations

from kattn_cli.papers.image_part import ImagePart
from kattn_cli.papers.primal import images as image_primal
from kattn_cli.papers.published import PaperName
from kattn_cli.papers.rpc import images as image_rpc
from kattn_cli.papers.tost import images as image_tost

IMAGE_PARTS: dict[PaperName, list[ImagePart]] = {
    "primal": image_primal.PARTS,
    "tost": image_tost.PARTS,
    "rpc": image_rpc.PARTS,
}
