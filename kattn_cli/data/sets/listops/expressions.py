"""Expressions of ListOps: nested lists of digits, each with an operator before it (Nangia and Bowman, 2018).

``[MAX 2 9 [MIN 4 7 ] 0 ]`` is 9. The operators are minimum, maximum, median (of an even count the mean of the middle
two, rounded down) and the sum modulo 10. A sequence is one digit or one such list, and its class is its value.

Random trees are drawn many at a time, level by level from the roots, so that numpy does all the work. A node is a list
with probability ¼, unless it is at the greatest depth, and a digit otherwise; a list has from 2 to ``max_args``
entries; operators, and digits, are as likely as each other (Long-Range Arena's ``generate_tree``).

N: nodes of one depth, of all trees, children in the order of their parents.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

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
    """Return ``tokens`` ``(N,)`` as they are written, with blanks between them."""
    return " ".join(TOKENS[token] for token in tokens)


def read_tokens(text: bytes) -> np.ndarray:
    """Return the tokens of a written sequence, uint8 ``(N,)``.

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


LIST_SHARE = 0.25
_NO_ENTRY = 99


@dataclass(frozen=True)
class Sequences:
    """``tokens`` of all, one sequence after the other, uint8; ``lengths`` ``(n,)`` int64; ``values`` ``(n,)`` uint8."""

    tokens: np.ndarray
    lengths: np.ndarray
    values: np.ndarray


@dataclass(frozen=True)
class _Level:
    """The nodes of one depth: ``tree`` ``(N,)``, and how many ``entries`` ``(N,)`` each has, 0 of a digit."""

    tree: np.ndarray
    entries: np.ndarray

    @property
    def is_list(self) -> np.ndarray:
        return self.entries > 0

    def of(self, trees: np.ndarray) -> _Level:
        """Return only the nodes of ``trees``, a mask over all of them."""
        return _Level(self.tree[trees[self.tree]], self.entries[trees[self.tree]])


def longest_possible(max_depth: int, max_args: int) -> int:
    """Return the number of tokens of the largest tree."""
    length = 1
    for _ in range(max_depth - 1):
        length = 2 + max_args * length
    return length


def draw_sequences(
    draw: np.random.Generator, roots: int, *, min_length: int, max_length: int, max_depth: int, max_args: int
) -> Sequences:
    """Draw ``roots`` random trees; return those of ``min_length`` to ``max_length`` tokens, exclusive, with values."""
    levels = _shapes(draw, roots, min_length, max_length, max_depth, max_args)
    contents = [_contents(draw, level) for level in levels]
    sizes, values = _sizes_and_values(levels, contents)
    return Sequences(_tokens(levels, contents, sizes), sizes[0], values)


def _shapes(
    draw: np.random.Generator, roots: int, min_length: int, max_length: int, max_depth: int, max_args: int
) -> list[_Level]:
    """Return the levels of the trees of the right length; those that become too long are given up on the way."""
    tree = np.arange(roots)
    lengths = np.zeros(roots, dtype=np.int64)
    levels = []
    for depth in range(1, max_depth + 1):
        share = LIST_SHARE if depth < max_depth else 0
        is_list = draw.random(tree.size) < share
        level = _Level(tree, np.where(is_list, draw.integers(2, max_args + 1, tree.size), 0))
        levels.append(level)
        lengths += np.bincount(tree, 1 + is_list, roots).astype(np.int64)
        with_entries = lengths + np.bincount(tree, level.entries, roots).astype(np.int64)
        lengths[with_entries >= max_length] = max_length
        tree = np.repeat(tree, level.entries)
        tree = tree[with_entries[tree] < max_length]
    right = (lengths > min_length) & (lengths < max_length)
    return [level.of(right) for level in levels]


def _contents(draw: np.random.Generator, level: _Level) -> np.ndarray:
    """Draw each node's digit, or the number of its operator, uint8 ``(N,)``."""
    digits = draw.integers(0, 10, level.tree.size, dtype=np.uint8)
    operators = draw.integers(0, len(OPERATORS), level.tree.size, dtype=np.uint8)
    return np.where(level.is_list, operators, digits)


def _sizes_and_values(levels: list[_Level], contents: list[np.ndarray]) -> tuple[list[np.ndarray], np.ndarray]:
    """Return the tokens of each node with all below it, by depth, and the values of the roots; from the leaves up."""
    sizes: list[np.ndarray] = []
    values = np.zeros(0, dtype=np.uint8)
    for level, content in zip(reversed(levels), reversed(contents), strict=True):
        size, value = np.ones(content.size, dtype=np.int64), content.copy()
        entries = level.entries[level.is_list]
        if entries.size:
            size[level.is_list] = 2 + np.add.reduceat(sizes[0], _starts(entries))
            value[level.is_list] = _evaluated(content[level.is_list], values, entries)
        sizes.insert(0, size)
        values = value
    return sizes, values


def _evaluated(operators: np.ndarray, values: np.ndarray, entries: np.ndarray) -> np.ndarray:
    """Return the value of each list, from its operator and its entries' values, which lie one after the other."""
    lists, last = np.arange(entries.size), entries - 1
    table = np.full((entries.size, entries.max()), _NO_ENTRY, dtype=np.uint8)
    table[np.arange(table.shape[1]) < entries[:, None]] = values
    table.sort(axis=1)
    medians = (table[lists, last // 2] + table[lists, entries // 2]) // 2
    sums = np.add.reduceat(values.astype(np.int64), _starts(entries)) % 10
    return np.choose(operators, (table[:, 0], table[lists, last], medians, sums)).astype(np.uint8)


def _tokens(levels: list[_Level], contents: list[np.ndarray], sizes: list[np.ndarray]) -> np.ndarray:
    """Return all trees written one after the other: from the roots downwards, each node is put at its place."""
    tokens = np.empty(sizes[0].sum(), dtype=np.uint8)
    place = _starts(sizes[0])
    for depth, (level, content) in enumerate(zip(levels, contents, strict=True)):
        tokens[place] = np.where(level.is_list, content + FIRST_OPERATOR, content)
        tokens[(place + sizes[depth] - 1)[level.is_list]] = END
        if depth + 1 < len(levels):
            entries = level.entries[level.is_list]
            before = _starts(sizes[depth + 1])
            place = before + np.repeat(place[level.is_list] + 1 - before[_starts(entries)], entries)
    return tokens


def _starts(counts: np.ndarray) -> np.ndarray:
    """Return where each of the parts of these ``counts`` begins, laid one after the other."""
    return np.cumsum(counts) - counts
