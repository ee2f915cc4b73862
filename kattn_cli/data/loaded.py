"""The interface of loaded data to training, measuring and printing, whatever the data are."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Protocol

import torch

from kattn_cli.data.images import SplitName


class LoadedData(Protocol):
    """A data set that is loaded, or outlined: with the sizes that a model needs and without ``splits``."""

    unit: ClassVar[str]
    """What a sample is called, in the plural: ``images``."""
    reads: ClassVar[str]
    """What a model on it reads, as manifests say and :data:`kattn_cli.tasks.TASKS` knows it."""

    @property
    def name(self) -> str:
        """The data set's name in a recipe."""

    @property
    def splits(self) -> Mapping[SplitName, Any]:
        """Each can be indexed, moved to a device and cut into batches; see :class:`~kattn_cli.data.images.Split`."""

    @property
    def chosen_on(self) -> SplitName:
        """The split that the best epoch is chosen on."""

    def unreadable(self) -> list[str]:
        """Return the samples found so far that could not be read."""

    def sample(self, count: int, device: torch.device | str) -> Any:
        """Return ``count`` random inputs of a model."""

    def targets(self, count: int, device: torch.device | str) -> Any:
        """Return random targets of as many."""
