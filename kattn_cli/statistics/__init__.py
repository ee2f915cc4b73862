"""What decides: models of a comparison, its power, and verdicts of a margin that is written down beforehand."""
