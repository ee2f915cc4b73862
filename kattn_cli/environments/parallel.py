"""Environments that run side by side, none of which begins anew by itself."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from kattn_cli.environments.single import make_environment

if TYPE_CHECKING:
    from gymnasium.vector import VectorEnv


def make_environments(environment: str, count: int, *, workers: bool = False) -> VectorEnv:
    """``count`` of ``environment``, which are reset one by one: an episode that is over stays so until then.

    Args:
        workers: each in a process of its own, for environments that take longer than a process takes to be told.

    Raises:
        KattnError: see :func:`~kattn_cli.environments.single.make_environment`.
    """
    make_environment(environment).close()
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv

    makers = [partial(make_environment, environment)] * count
    kind = AsyncVectorEnv if workers else SyncVectorEnv
    return kind(makers, autoreset_mode=AutoresetMode.DISABLED)
