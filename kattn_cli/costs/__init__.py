"""What attention costs: time, memory, operations, decoding, and what a machine can do at most."""
