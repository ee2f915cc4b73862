"""Series and sequences of tokens that are classified."""
