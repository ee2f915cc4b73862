"""``kattn data collect corridor``: recorded behaviour of a scripted policy, which needs no training."""

from __future__ import annotations

from pathlib import Path

from kattn_cli.data.trajectories.steps import Steps, write_steps
from kattn_cli.environments.make import require_control
from kattn_cli.environments.names import CORRIDOR, environment_id
from kattn_cli.errors import KattnError

FILE = "corridor_mixed.hdf5"


def collect_scripted(environment: str, output: Path, transitions: int, seed: int) -> Path:
    """Record episodes of every skill, of at least so many ``transitions``; a file that is there is written anew.

    Raises:
        KattnError: if ``environment`` is another one, or a package is missing.
        DataError: if the file cannot be written.
    """
    require_control("kattn data collect", "gymnasium", "h5py")
    from kattn_cli.environments.scripted import STEPS, scripted_trajectories

    if environment_id(environment) != CORRIDOR:
        raise KattnError(f"--algorithm scripted: is of corridor; {environment} has no script, take sac, td3 or ppo")
    path = output / FILE
    steps = Steps(**scripted_trajectories(-(-transitions // STEPS), seed))
    write_steps(path, steps, {"environment": CORRIDOR})
    return path
