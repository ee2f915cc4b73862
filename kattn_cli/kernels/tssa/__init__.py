"""Token statistics self-attention (ToST, eq. 10–11): equations, operator, and its kernels in Triton and C."""
