"""Softmax attention as kernel PCA: do learned values agree with Theorem 1's (RPC-Attention, §2)?"""
