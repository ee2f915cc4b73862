"""Environments that a policy acts in: their names, reference returns, and one of our own. Never imports torch."""
