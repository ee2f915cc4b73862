"""An environment of gymnasium's, fit for a policy of vectors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kattn_cli.environments.extra import require_control
from kattn_cli.environments.names import environment_id
from kattn_cli.environments.physics import warn_once
from kattn_cli.errors import KattnError

if TYPE_CHECKING:
    import gymnasium

LONGEST = 1000
"""Steps after which an episode is cut short where its environment names no limit, as D4RL does."""


def make_environment(environment: str) -> gymnasium.Env[Any, Any]:
    """``environment`` is a short name of :mod:`~kattn_cli.environments.names` or an id of gymnasium's.

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
