"""Primal-Attention's scores (eq. 6–11): equations, operator, and kernels in Triton and C."""
