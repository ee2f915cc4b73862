"""CSV in, picture out. Never imports torch."""
