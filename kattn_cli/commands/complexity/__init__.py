"""``kattn complexity``."""
