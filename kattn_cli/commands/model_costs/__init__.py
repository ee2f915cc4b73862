"""``kattn model-costs``."""
