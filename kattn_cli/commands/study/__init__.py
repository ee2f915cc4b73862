"""``kattn study``."""
