"""``kattn reproduce``."""
