"""What a policy acts in: names, reference returns, and environments of our own. Never imports torch."""
