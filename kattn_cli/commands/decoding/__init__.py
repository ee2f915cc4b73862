"""``kattn decoding``."""
