"""What a data set of trajectories says of itself, and what it holds."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from importlib.util import find_spec
from typing import ClassVar

from kattn_cli.data.dataset import DataSet
from kattn_cli.data.trajectories.recorded import Recorded
from kattn_cli.errors import DataError
from kattn_cli.recipe.data import TrajectorySection


@dataclass(frozen=True)
class TrajectoryFacts:
    """The numbers of a state and of an action, and the steps of a window."""

    states: int
    actions: int
    context: int


class TrajectorySet(DataSet):
    """A data set of trajectories.

    ``environment``: what was acted in, where an option says; ``context``: how many steps a model sees at most;
    ``return_scale``: what it divides returns by.
    """

    name: ClassVar[str]
    needs: ClassVar[str]
    """The package that reads it."""
    reads = "trajectories"
    section = TrajectorySection
    environment: str | None
    context: int
    return_scale: float

    @abstractmethod
    def facts(self) -> TrajectoryFacts:
        """Widths, without reading a step.

        Raises:
            DataError: if that needs files which are not there or damaged.
        """

    @abstractmethod
    def load(self) -> Recorded:
        """Every whole episode.

        Raises:
            DataError: if a file is missing, damaged, or not of this kind, in one line that says where.
        """

    def lacking(self) -> str:
        """Empty if the package that reads it is installed; else one line."""
        if find_spec(self.needs) is None:
            needed = f"{self.name} is read by {self.needs}"
            return f"data.name: {needed}, which is not installed: pip install 'kattn[control]'"
        return ""

    def require(self) -> None:
        """Raise what :meth:`missing` says.

        Raises:
            DataError: if it says anything.
        """
        if missing := self.missing():
            raise DataError(f"{self.name}: {missing.removeprefix('data.')}")

    def fetch(self) -> None:
        """See :class:`~kattn_cli.data.dataset.DataSet`: there is nothing to fetch it from."""
        raise DataError(f"{self.name}: cannot be fetched; {self.how_to_get}")
