"""``kattn kernel-pca``."""
