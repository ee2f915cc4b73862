"""``kattn power``."""
