"""The tables of images of each paper."""

from __future__ import annotations

from kattn_cli.figures import image_primal, image_rpc, image_tost
from kattn_cli.figures.image_part import ImagePart
from kattn_cli.papers.published import PaperName

IMAGE_PARTS: dict[PaperName, list[ImagePart]] = {
    "primal": image_primal.PARTS,
    "tost": image_tost.PARTS,
    "rpc": image_rpc.PARTS,
}
