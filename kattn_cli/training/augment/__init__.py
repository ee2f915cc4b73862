"""Augmentation: of whole batches on their device, and of single images in worker processes."""
