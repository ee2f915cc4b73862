"""Where a text can be cut so that the tokens of its parts are those of the whole.

That is between something and a space that follows it, which is then the first of the next part, and after a single
line end between two words. No word is cut there, nor what the patterns of byte-level BPEs (GPT-2's, and its later
ones') take as one: none has a space but at its beginning, nor goes on after a line end with other than whitespace.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

_CUT = re.compile(r"(?<=\S) |(?<=\S\n)(?=\S)")
_STEP = 4096


def last_cut(text: str) -> int:
    """The last place where ``text`` can be cut, or 0 where it cannot be."""
    looked_at = _STEP
    while True:
        start = max(len(text) - looked_at, 0)
        places = [match.start() for match in _CUT.finditer(text, start)]
        if places or start == 0:
            return places[-1] if places else 0
        looked_at *= 4


def parts(text: str, length: int) -> Iterator[str]:
    """``text`` in parts of about ``length`` characters, longer where it cannot be cut."""
    start = 0
    while start < len(text):
        match = _CUT.search(text, start + length)
        stop = match.start() if match else len(text)
        yield text[start:stop]
        start = stop
