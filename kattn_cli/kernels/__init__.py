"""Operators of attention: a folder for each that has kernels of its own, a file for each that needs none.

``equations.py`` reads like the paper and is the truth that all else equals; ``operator.py`` chooses by device and size;
``triton.py`` launches the passes of ``triton_kernels.py`` on a GPU; ``c.py`` calls the C of the header beside it.
"""
