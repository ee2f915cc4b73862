"""Kernels in Triton for a GPU, each equal to its slow version; Triton's interpreter runs them on a CPU in the tests."""
