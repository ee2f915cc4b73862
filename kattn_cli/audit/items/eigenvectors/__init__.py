"""Softmax attention as kernel PCA: are the values eigenvectors of the keys' Gram matrix (RPC-Attention, §2.2.2)?"""
