"""A whole data set of different ListOps sequences, and the file that it is kept in."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np

from kattn_cli.data.reading.storage import Damaged, reading_arrays
from kattn_cli.data.sets.listops.expressions import Sequences, draw_sequences
from kattn_cli.errors import DataError

_ROOTS = 20_000
_IN_VAIN = 10_000_000
_VERSION = 1


@dataclass(frozen=True)
class Wanted:
    """All that decides which sequences are made: ``counts`` of training, validation and test, and see :mod:`.trees`."""

    min_length: int
    max_length: int
    max_depth: int
    max_args: int
    counts: tuple[int, int, int]
    seed: int

    @property
    def file_name(self) -> str:
        """Of its own for all that changes a sequence."""
        counts = "-".join(map(str, self.counts))
        limits = f"{self.min_length}-{self.max_length}-d{self.max_depth}-a{self.max_args}"
        return f"v{_VERSION}-{limits}-n{counts}-s{self.seed}.npz"


def generate(wanted: Wanted) -> Sequences:
    """Generate ``sum(counts)`` sequences, none twice, in the order in which they were drawn: training first.

    Raises:
        DataError: if there are hardly so many.
    """
    count, found, trees, last = sum(wanted.counts), 0, 0, 0
    draw = np.random.default_rng(np.random.SeedSequence(wanted.seed))
    seen: set[bytes] = set()
    parts: list[Sequences] = []
    while found < count:
        drawn = draw_sequences(
            draw,
            _ROOTS,
            min_length=wanted.min_length,
            max_length=wanted.max_length,
            max_depth=wanted.max_depth,
            max_args=wanted.max_args,
        )
        trees += _ROOTS
        if new := _new(drawn, seen)[: count - found]:
            parts.append(_chosen(drawn, new))
            found, last = found + len(new), trees
        elif trees - last >= _IN_VAIN:
            raise DataError(
                f"listops: found {found:,} different sequences of more than {wanted.min_length:,} and fewer than "
                f"{wanted.max_length:,} tokens, not {count:,}, and no more among the last {_IN_VAIN:,} trees; give "
                "other data.min_length and data.max_length, or a smaller data.train"
            )
    return Sequences(*(np.concatenate(arrays) for arrays in zip(*map(_arrays, parts), strict=True)))


def write(path: Path, sequences: Sequences) -> None:
    """Keep ``sequences`` in an ``.npz`` file, whose parts have a checksum each."""
    np.savez(path, tokens=sequences.tokens, lengths=sequences.lengths, values=sequences.values)


def read(path: Path, count: int) -> Sequences:
    """Read what :func:`write` has kept.

    Raises:
        Damaged: if it is not ``count`` sequences, undamaged.
    """
    with reading_arrays(), np.load(path, allow_pickle=False) as file:
        found = Sequences(file["tokens"], file["lengths"], file["values"])
    if not len(found.lengths) == len(found.values) == count or found.lengths.sum() != len(found.tokens):
        raise Damaged
    return found


def _new(drawn: Sequences, seen: set[bytes]) -> list[int]:
    """Return which of ``drawn`` are not in ``seen``, and add them there."""
    new = []
    for index, (start, end) in enumerate(_spans(drawn)):
        digest = blake2b(drawn.tokens[start:end].tobytes(), digest_size=16).digest()
        if digest not in seen:
            seen.add(digest)
            new.append(index)
    return new


def _chosen(drawn: Sequences, indices: list[int]) -> Sequences:
    chosen = np.zeros(len(drawn.lengths), dtype=bool)
    chosen[indices] = True
    tokens = drawn.tokens[np.repeat(chosen, drawn.lengths)]
    return Sequences(tokens, drawn.lengths[chosen], drawn.values[chosen])


def _spans(drawn: Sequences) -> Iterator[tuple[int, int]]:
    ends = drawn.lengths.cumsum()
    return zip((ends - drawn.lengths).tolist(), ends.tolist(), strict=True)


def _arrays(sequences: Sequences) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return sequences.tokens, sequences.lengths, sequences.values
