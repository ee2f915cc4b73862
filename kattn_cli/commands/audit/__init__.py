"""``kattn audit``."""
