"""``kattn eval``."""
