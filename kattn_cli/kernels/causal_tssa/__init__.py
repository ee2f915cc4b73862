"""Causal token statistics self-attention (ToST, Algorithm 2): equations, operator, kernels in Triton and C."""
