"""``kattn list``."""
