"""Trajectories: what a policy saw, did and got, from which another is learnt without acting."""

from kattn_cli.data.trajectories.trajectory_set import TrajectoryFacts, TrajectorySet
from kattn_cli.data.trajectories.windows import TrajectoryData, TrajectorySplit, Windows

__all__ = [
    "TrajectoryData",
    "TrajectoryFacts",
    "TrajectorySet",
    "TrajectorySplit",
    "Windows",
]
