"""``kattn train``."""
