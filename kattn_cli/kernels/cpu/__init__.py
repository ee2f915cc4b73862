"""Kernels in C for a CPU: compiled once for the machine that runs them, and called by as many threads as torch has."""
