"""The word-swap attack: a random share of a text's words becomes ``AAA`` (002, A.4, with TextAttack's word swap).

The paper gives neither the share nor the draw. Ours: word ``i`` of a text is swapped if the ``i``-th uniform number of
``PCG64(seed)`` is below the share, so that the words of a smaller share are among those of a larger one, and a text
read in pieces becomes the same as in one. Words are maximal runs of what is no whitespace, so WikiText's punctuation
is words too, and ``<unk>`` is one; whitespace stays as it is. Markers of a line's or a text's end are no words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

import numpy as np

SWAPPED = "AAA"
MARKERS = frozenset({"<eos>", "</s>", "<|endoftext|>"})
_WORD = re.compile(r"\S+")


def swap_words(text: str, share: float, seed: int, with_: str = SWAPPED) -> str:
    """Return ``text`` with each word replaced ``with_`` at probability ``share``, 0 … 1, drawn from ``seed``.

    Raises:
        ValueError: if ``share`` is no share.
    """
    return "".join(swap_words_in(iter([text]), share, seed, with_))


def swap_words_in(texts: Iterable[str], share: float, seed: int, with_: str = SWAPPED) -> Iterator[str]:
    """Yield :func:`swap_words` of a text in pieces, cut anywhere; the pieces that come out may be cut elsewhere.

    Raises:
        ValueError: if ``share`` is no share.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"the share of words to swap must be between 0 and 1, not {share}")
    draws = np.random.Generator(np.random.PCG64(seed))
    unfinished = ""
    for text in texts:
        whole = unfinished + text
        unfinished = "" if not whole or whole[-1].isspace() else whole.rsplit(None, 1)[-1]
        yield _swapped(whole.removesuffix(unfinished), share, draws, with_)
    yield _swapped(unfinished, share, draws, with_)


def _swapped(text: str, share: float, draws: np.random.Generator, with_: str) -> str:
    def one(match: re.Match[str]) -> str:
        return match[0] if match[0] in MARKERS or next(numbers) >= share else with_

    count = sum(match[0] not in MARKERS for match in _WORD.finditer(text))
    numbers = iter(draws.random(count).tolist())
    return _WORD.sub(one, text)
