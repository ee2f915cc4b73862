"""``kattn generate``."""
