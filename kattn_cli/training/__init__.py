"""Training: the loop, its schedule, its random numbers, its checkpoints."""
