"""Floating-point operations of the pieces that mechanisms are made of, forward pass, one sample.

A multiply-add counts as two, every other arithmetic operation, comparison and exponential as one.

What the mathematics asks for is counted, whichever version of an operator computes it: a kernel that computes
something twice, or skips the half that a causal mask hides, counts the same. Where tokens meet in blocks, whole blocks
count, and a sort counts its comparisons. Left out is what calculates nothing: memory moves (copies, transpositions,
concatenation, gathering, padding), masks, indices and positions, random draws, and changes of precision.
"""

from __future__ import annotations


def linear(n: int, inputs: int, outputs: int, bias: bool = True) -> int:
    """Count a linear map of ``n`` tokens."""
    return n * outputs * (2 * inputs + bias)


def softmax(rows: int, width: int) -> int:
    """Count maximum, subtraction, exponential, sum and division for each entry."""
    return 5 * rows * width


def standardisation(n: int, dim: int) -> int:
    """Count mean, subtraction, square, sum and division for each entry."""
    return 5 * n * dim


def softmax_attention(n: int, dim: int, heads: int) -> int:
    """Count ``softmax(q kᵀ / √d) v``: two products, the scaling and the softmax."""
    return 4 * n * n * dim + heads * n * n + softmax(heads * n, n)
