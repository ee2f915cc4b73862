"""``kattn data collect``."""
