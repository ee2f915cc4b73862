"""RPC-Attention's pursuit on trained keys: does it converge, and does it separate planted corruption?"""
