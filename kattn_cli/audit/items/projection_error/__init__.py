"""Softmax attention as kernel PCA: does training lower the projection error (RPC-Attention, §2.2.1)?"""
