"""``kattn sweep``."""
