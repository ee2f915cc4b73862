"""``kattn plot``."""
