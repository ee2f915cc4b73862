"""Centring against scikit-learn and by hand, of arrays and of tensors."""

from __future__ import annotations

import numpy as np
import torch
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import KernelCenterer

from kattn_cli.audit.centring import centred


def test_centring_is_that_of_scikit_learn_for_arrays_and_tensors() -> None:
    gram = rbf_kernel(np.random.default_rng(0).normal(size=(30, 4)))
    expected = KernelCenterer().fit_transform(gram)
    np.testing.assert_allclose(centred(gram), expected, atol=1e-14)
    np.testing.assert_allclose(centred(torch.tensor(gram).expand(2, 30, 30))[1], expected, atol=1e-14)


def test_centring_an_asymmetric_matrix_by_hand() -> None:
    np.testing.assert_allclose(centred(np.array([[1.0, 2], [3, 8]])), [[1, -1], [-1, 1]])
