"""``kattn spectrum``."""
