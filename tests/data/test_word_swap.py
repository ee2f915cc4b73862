"""The word swap by hand, and in pieces."""

from __future__ import annotations

import numpy as np
import pytest

from kattn_cli.data.word_swap import swap_words, swap_words_in

TEXT = " \n = Robert <unk> = \n\tHe had\u00a0a  guest @-@ role . <eos>\r\n<eos> and\u2028more words"


def test_words_below_the_share_are_swapped_and_whitespace_stays() -> None:
    drawn = np.random.Generator(np.random.PCG64(7)).random(5) < 0.5
    assert drawn.tolist() == [False, False, False, True, True]
    assert swap_words("one  two\n<eos> three\t four five \n", 0.5, 7) == "one  two\n<eos> three\t AAA AAA \n"
    assert swap_words(TEXT, 0, 0) == TEXT
    every = " \n AAA AAA AAA AAA \n\tAAA AAA\u00a0AAA  AAA AAA AAA AAA <eos>\r\n<eos> AAA\u2028AAA AAA"
    assert swap_words(TEXT, 1, 0) == every
    assert swap_words("a b", 1, 0, with_="") == " "


def test_words_of_a_smaller_share_are_among_those_of_a_larger_one() -> None:
    text = " ".join(f"w{i}" for i in range(5000))
    few, many = (swap_words(text, share, 3).split() for share in (0.1, 0.3))
    assert all(b == "AAA" for a, b in zip(few, many, strict=True) if a == "AAA")
    assert few.count("AAA") == pytest.approx(500, abs=3 * 5000**0.5 * 0.3)
    assert swap_words(text, 0.1, 4).split() != few


def test_line_ends_written_either_way_leave_the_same_words() -> None:
    text = " a b \n c \n\n d e f \n"
    marked = swap_words(text.replace("\n", " <eos> "), 0.5, 1)
    assert marked.replace(" <eos> ", "\n") == swap_words(text, 0.5, 1) != text


@pytest.mark.parametrize("size", [1, 2, 3, 5, 1000])
def test_pieces_make_the_whole(size: int) -> None:
    pieces = [TEXT[i : i + size] for i in range(0, len(TEXT), size)]
    assert "".join(swap_words_in(pieces, 0.4, 5)) == swap_words(TEXT, 0.4, 5)
    assert swap_words(TEXT, 0.4, 5) not in (TEXT, swap_words(TEXT, 1, 5))


def test_no_share() -> None:
    with pytest.raises(ValueError, match=r"the share of words to swap must be between 0 and 1, not 1\.5"):
        swap_words("a", 1.5, 0)
