"""A text cut into parts has the words, and the pieces of byte-level BPEs, of the whole."""

from __future__ import annotations

import numpy as np
import pytest
from tokenizers import Regex, pre_tokenizers

from kattn_cli.data.vocabulary.vocabulary import last_cut, parts

LATER = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
PATTERNS = {
    "gpt-2": pre_tokenizers.ByteLevel(add_prefix_space=False),
    "its successors": pre_tokenizers.Split(Regex(LATER), "isolated"),
}


def random_text(seed: int, count: int = 400) -> str:
    draw = np.random.default_rng(seed)
    return "".join(draw.choice(list("  \n\n\t\r\u00a0\x1c\u2028ab1é'.😀s"), count))


@pytest.mark.parametrize("name", PATTERNS)
@pytest.mark.parametrize("seed", range(20))
def test_parts_are_cut_between_a_bpes_pieces(name: str, seed: int) -> None:
    text = random_text(seed)
    cut = list(parts(text, 7))
    assert "".join(cut) == text
    assert len(cut) > 10
    whole = [piece for piece, _ in PATTERNS[name].pre_tokenize_str(text)]
    assert [piece for part in cut for piece, _ in PATTERNS[name].pre_tokenize_str(part)] == whole


def test_the_last_cut_is_the_last_place_where_parts_would_cut() -> None:
    assert last_cut("one two") == 3
    assert last_cut("one\ntwo") == 4
    assert last_cut("one \n two") == 3
    assert last_cut("one\n\ntwo") == 0
    assert last_cut("one\n") == 0
    assert last_cut("one ") == 3
    assert last_cut("") == 0
    far = "a b" + "c" * 20_000
    assert last_cut(far) == 1
    for seed in range(20):
        text = random_text(seed, 60)
        places = np.cumsum([len(part) for part in parts(text, 1)])[:-1].tolist()
        assert last_cut(text) == (places[-1] if places else 0)
