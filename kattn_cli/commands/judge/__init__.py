"""``kattn judge``."""
