"""``kattn attack``."""
