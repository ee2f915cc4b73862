"""Principal Attention Pursuit (RPC-Attention, Algorithm 1): equations, operator, and kernels in Triton."""
