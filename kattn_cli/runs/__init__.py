"""The run folder: made, found, held, and its files. Never imports torch."""
