"""``kattn throughput``."""
