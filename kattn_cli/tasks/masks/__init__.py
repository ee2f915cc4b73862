"""Segmentation: images with a class for every pixel."""
