"""Where many independent pieces of work are done: on this machine, under SLURM, on a Ray cluster."""

from __future__ import annotations

from kattn_cli.executors.executor import Executor, Request
from kattn_cli.executors.local import LocalExecutor
from kattn_cli.executors.ray import RayExecutor
from kattn_cli.executors.slurm import SlurmExecutor

EXECUTORS: dict[str, type[Executor]] = {"local": LocalExecutor, "slurm": SlurmExecutor, "ray": RayExecutor}

__all__ = ["EXECUTORS", "Executor", "Request"]
