"""Offline reinforcement learning: actions from recorded trajectories."""
