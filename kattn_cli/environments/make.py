"""Making of gymnasium's environments, those that suit a policy of vectors, alone or several side by side."""

from __future__ import annotations

import sys
from functools import cache, partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from kattn_cli.environments.names import environment_id
from kattn_cli.errors import KattnError


def require_control(purpose: str, *packages: str) -> None:
    """Refuse to go on without ``packages``; ``purpose`` begins the message.

    Raises:
        KattnError: naming those that are not installed, and the command that installs them.
    """
    if absent := [package for package in packages if find_spec(package) is None]:
        verb = "is" if len(absent) == 1 else "are"
        raise KattnError(
            f"{purpose} needs {' and '.join(absent)}, which {verb} not installed: pip install 'kattn[control]'"
        )


def warn_once() -> None:
    """Print each of MuJoCo's warnings once, in this process and those that it forks.

    Without MuJoCo there is nothing to do.
    """
    if find_spec("mujoco"):
        import mujoco

        mujoco.set_mju_user_warning(_tell)


@cache
def _tell(message: str) -> None:
    print(f"MuJoCo: {message}", file=sys.stderr)


if TYPE_CHECKING:
    import gymnasium

LONGEST = 1000
"""Steps after which an episode is cut short where its environment names no limit, as D4RL does."""


def make_environment(environment: str) -> gymnasium.Env[Any, Any]:
    """Return the environment of a short name of :mod:`~kattn_cli.environments.names` or of an id of gymnasium's.

    Raises:
        KattnError: if gymnasium or the physics is not installed, there is no such environment, or its states or
            actions are not vectors of numbers.
    """
    require_control(f"to act in {environment}", "gymnasium")
    import gymnasium
    from gymnasium.spaces import Box

    import kattn_cli.environments.scripted  # noqa: F401  registers what is our own

    warn_once()
    name = environment_id(environment)
    try:
        limit = gymnasium.spec(name).max_episode_steps or LONGEST
        made = gymnasium.make(name, max_episode_steps=limit)
    except gymnasium.error.DependencyNotInstalled as error:
        raise KattnError(f"{name}: {_one_line(error)}: pip install 'kattn[control]'") from None
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        raise KattnError(f"{environment}: gymnasium has no such environment: {_one_line(error)}") from None
    for what, space in (("states", made.observation_space), ("actions", made.action_space)):
        if not isinstance(space, Box) or len(space.shape) != 1:
            made.close()
            raise KattnError(f"{environment}: its {what} are {space}, and a policy here takes vectors (Box)")
    return made


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")


if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


def make_environments(environment: str, count: int, *, workers: bool = False) -> VectorEnv:
    """Return ``count`` environments that are reset one by one: an episode that is over stays so until then.

    Args:
        workers: each in a process of its own, for environments whose steps take longer than messages to a process.

    Raises:
        KattnError: see :func:`~kattn_cli.environments.make.make_environment`.
    """
    # Made once here, so that a fault shows in this process and not in a worker.
    make_environment(environment).close()
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

    makers = [partial(make_environment, environment)] * count
    kind = AsyncVectorEnv if workers else SyncVectorEnv
    return kind(makers, autoreset_mode=AutoresetMode.DISABLED)
