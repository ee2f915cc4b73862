"""``kattn data``."""
