"""``kattn benchmark``."""
