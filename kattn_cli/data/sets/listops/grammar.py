"""The language of ListOps: nested lists of digits, each with an operator before it (Nangia and Bowman, 2018).

``[MAX 2 9 [MIN 4 7 ] 0 ]`` is 9. The operators are minimum, maximum, median (of an even count the mean of the middle
two, rounded down) and the sum modulo 10. A sequence is one digit or one such list, and its class is its value.
"""

from __future__ import annotations

import re

import numpy as np

OPERATORS = ("[MIN", "[MAX", "[MED", "[SM")
TOKENS = (*map(str, range(10)), *OPERATORS, "]")
"""A token's number is its place here: digits are 0 … 9, operators 10 … 13, the closing bracket 14."""

CLASSES = 10
FIRST_OPERATOR = 10
END = TOKENS.index("]")
_IN_ONE_BYTE = {operator.encode(): bytes([number]) for number, operator in enumerate(OPERATORS, FIRST_OPERATOR)}
_UNKNOWN = 255
_NUMBERS = np.full(256, _UNKNOWN, dtype=np.uint8)
_NUMBERS[[ord(token) for token in TOKENS if len(token) == 1]] = [*range(10), END]
_NUMBERS[FIRST_OPERATOR:END] = range(FIRST_OPERATOR, END)
_TWO_DIGITS = re.compile(rb"\d\d")


def spelled(tokens: np.ndarray) -> str:
    """``tokens`` ``(N,)`` as they are written, with blanks between them."""
    return " ".join(TOKENS[token] for token in tokens)


def read_tokens(text: bytes) -> np.ndarray:
    """The tokens of a written sequence, uint8 ``(N,)``.

    Round brackets, which Long-Range Arena's files have around every pair, are left out, as its reader does.

    Raises:
        ValueError: if something in it is no token, or its square brackets do not match; the text says which.
    """
    letters = text.translate(None, b"() ")
    for operator, byte in _IN_ONE_BYTE.items():
        letters = letters.replace(operator, byte)
    tokens = _NUMBERS[np.frombuffer(letters, dtype=np.uint8)]
    if (tokens == _UNKNOWN).any() or _TWO_DIGITS.search(text):
        raise ValueError(f"has something that is none of {' '.join(TOKENS)} ( )")
    steps = (tokens >= FIRST_OPERATOR).astype(np.int16)
    steps[tokens == END] = -1
    inside = np.cumsum(steps)
    if not tokens.size or inside[-1] != 0 or (inside[:-1] <= 0).any():
        raise ValueError("is not one list, or its brackets do not match")
    return tokens
