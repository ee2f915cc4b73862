"""Operators on ``(B, H, N, d)`` tensors, each beside a slow version that reads like the equation."""
