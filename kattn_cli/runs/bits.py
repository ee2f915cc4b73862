"""Which images (samples) were right, one bit each in the order of the split, as a cell of a table. Never imports torch.

The cell is base64 of zlib of the packed bits: of 10,000 images 1.7 kB where half of them are right, and half of that
where nearly all are. Zlib's checksum finds a cell that was changed.
"""

from __future__ import annotations

import binascii
import zlib
from base64 import b64decode, b64encode
from typing import TYPE_CHECKING

from kattn_cli.errors import RunError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

CORRECT = "correct"
"""The column, the last of its table."""


def packed(right: NDArray[np.bool_]) -> str:
    """Return a cell that says which images were right, ``(images,)``."""
    import numpy as np

    return b64encode(zlib.compress(np.packbits(right).tobytes(), 9)).decode()


def unpacked(text: str, images: int) -> NDArray[np.bool_]:
    """Return which of so many images were right, ``(images,)``, from the cell that :func:`packed` made.

    Raises:
        RunError: if it is no such cell, or one of another number of images.
    """
    import numpy as np

    if fault := fault_of(text, images):
        raise RunError(fault)
    return np.unpackbits(np.frombuffer(_bytes(text), np.uint8), count=images).astype(bool)


def fault_of(text: str, images: int) -> str:
    """Return what is wrong with a cell, as the rest of a line; empty if nothing is."""
    try:
        content = _bytes(text)
    except (ValueError, binascii.Error, zlib.error):
        return f"which of {images:,} images are right was expected, in base64 of zlib, and is damaged"
    size = (images + 7) // 8
    spare = 8 * size - images
    if len(content) == size and not (spare and content[-1] & ((1 << spare) - 1)):
        return ""
    return f"which of {images:,} images are right was expected, not bits of another number of them"


def _bytes(text: str) -> bytes:
    return zlib.decompress(b64decode(text, validate=True))
