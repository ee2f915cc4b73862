"""Kernel PCA by its dual and by standard solvers, with robust and sparse losses, and of asymmetric kernels."""
