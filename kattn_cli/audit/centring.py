"""Centring of a Gram matrix (RPC-Attention, Remark 1; Schölkopf et al. 1998). Of arrays and of tensors."""

from __future__ import annotations

from typing import Any, TypeVar

Matrix = TypeVar("Matrix", bound=Any)


def centred(gram: Matrix) -> Matrix:
    """``K − 1_N K − K 1_N + 1_N K 1_N``, every entry of ``1_N`` being 1/N: the Gram matrix of centred features.

    An array or a tensor ``(…, N, N)``, and one of the same kind back.
    """
    columns = gram.mean(axis=-2, keepdims=True)
    return gram - columns - gram.mean(axis=-1, keepdims=True) + columns.mean(axis=-1, keepdims=True)
