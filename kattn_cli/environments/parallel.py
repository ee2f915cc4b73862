"""Environments that run side by side, none of which begins anew by itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kattn_cli.environments.extra import require_control
from kattn_cli.environments.names import environment_id
from kattn_cli.errors import KattnError

if TYPE_CHECKING:
    import gymnasium
    from gymnasium.vector import VectorEnv

LONGEST = 1000
"""Steps after which an episode is cut short where its environment names no limit, as D4RL does."""


def make_environments(environment: str, count: int, *, workers: bool = False) -> VectorEnv:
    """``count`` of ``environment``, a short name of :mod:`~kattn_cli.environments.names` or an id of gymnasium's.

    They are reset one by one (``reset_mask``): an episode that is over stays so until then.

    Args:
        workers: each in a process of its own, for environments that take longer than a process takes to be told.

    Raises:
        KattnError: if gymnasium or the physics is not installed, there is no such environment, or its states or
            actions are not vectors of numbers.
    """
    require_control(f"to act in {environment}", "gymnasium")
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

    makers = [partial(make_environment, environment)] * count
    _require_vectors(environment, makers[0]())
    kind = AsyncVectorEnv if workers else SyncVectorEnv
    return kind(makers, autoreset_mode=AutoresetMode.DISABLED)


def make_environment(environment: str) -> gymnasium.Env:
    """One of them, that ends after :data:`LONGEST` steps if it knows no end of its own.

    Raises:
        KattnError: see :func:`make_environments`.
    """
    import gymnasium

    import kattn_cli.environments.scripted  # noqa: F401  registers what is our own

    name = environment_id(environment)
    try:
        limit = gymnasium.spec(name).max_episode_steps or LONGEST
        return gymnasium.make(name, max_episode_steps=limit)
    except gymnasium.error.DependencyNotInstalled as error:
        raise KattnError(f"{name}: {_one_line(error)}: pip install 'kattn[control]'") from None
    except (gymnasium.error.Error, ModuleNotFoundError) as error:
        raise KattnError(f"{environment}: gymnasium has no such environment: {_one_line(error)}") from None


def _require_vectors(environment: str, made: gymnasium.Env) -> None:
    from gymnasium.spaces import Box

    made.close()
    for what, space in (("states", made.observation_space), ("actions", made.action_space)):
        if not isinstance(space, Box) or space.shape is None or len(space.shape) != 1:
            raise KattnError(f"{environment}: its {what} are {space}, and a Decision Transformer takes vectors (Box)")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(".")
