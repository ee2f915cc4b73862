"""Faults that a user's machine makes: kills, damaged files, full disks, others at work, power that fails."""
