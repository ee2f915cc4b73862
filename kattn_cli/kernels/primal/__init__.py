"""Primal-Attention's scores (eq. 6–11): equations, operator, and kernels in Triton and C."""

NORM_EPSILON = 1e-12
"""The least norm that queries and keys are divided by; all versions share it, the header in C by its own name."""
