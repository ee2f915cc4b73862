"""A paper, and its folder."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from kattn_cli.papers.beside import PaperTable
    from kattn_cli.papers.claim import Claim
    from kattn_cli.papers.costs import ModelCosts

Printed = Mapping[tuple[str, str, str, str], float]
"""By table, row, metric and model."""


@dataclass(frozen=True)
class Paper:
    """A paper whose numbers ours are laid beside and whose claims are judged.

    Its folder is a package with those of these that the paper has, each read when it is first asked for:

    - ``numbers.csv``: the numbers that it prints (see ``README.md`` beside this file for the columns);
    - ``tables.py`` with ``TABLES``: which of our numbers belong into which of its tables;
    - ``claims.py``, or a package, with ``CLAIMS``;
    - ``plan.yaml``: how to make its tables again;
    - ``costs.py`` with ``COSTS``: where it prints the costs of whole models.

    Attributes:
        name: what options and files call it, ``rpc``.
        method: what tables call it, ``RPC-Attention``.
        title: the heading of its claims.
        package: the dotted name of its folder.
        figures: how the names of those figures begin that its claims rest on.
    """

    name: str
    method: str
    title: str
    package: str
    figures: tuple[str, ...] = ()

    @property
    def folder(self) -> Path:
        return Path(str(import_module(self.package).__file__)).parent

    @property
    def tables(self) -> Sequence[PaperTable]:
        return self._member("tables", "TABLES", ())

    @property
    def claims(self) -> Sequence[Claim]:
        return self._member("claims", "CLAIMS", ())

    @property
    def costs(self) -> ModelCosts | None:
        return self._member("costs", "COSTS", None)

    @property
    def plan(self) -> Path:
        """Return the file with its plans, which need not exist."""
        return self.folder / "plan.yaml"

    @property
    def numbers(self) -> pd.DataFrame:
        """Return its numbers with the columns ``table, row, model, metric, value, spread``; shared, not to be changed.

        ``table`` is ``table1``, or ``v1_table5`` of what the first version of a paper alone has; ``row`` the paper's
        row, data set or setting; ``model`` our name of it where there is one, else the paper's. Accuracies are in %,
        units of other metrics in their names. ``spread`` is the ± that is printed, nan where there is none.
        """
        return _numbers(self.folder / "numbers.csv")

    @property
    def printed(self) -> Printed:
        """Return the number that the paper prints for each ``(table, row, metric, model)``."""
        return _printed(self.folder / "numbers.csv")

    def number(self, table: str, row: str, metric: str, model: str) -> float:
        """Return one number of a table; nan where it has none."""
        return self.printed.get((table, row, metric, model), math.nan)

    def difference(self, table: str, row: str, metric: str, models: Sequence[str]) -> float:
        """Return the first model's number less the second's."""
        ours, base = (self.number(table, row, metric, model) for model in models)
        return ours - base

    def ratio(self, table: str, row: str, metric: str, models: Sequence[str]) -> float:
        """Return the first model's number over the second's."""
        ours, base = (self.number(table, row, metric, model) for model in models)
        return ours / base

    def _member(self, module: str, name: str, missing: Any) -> Any:
        dotted = f"{self.package}.{module}"
        return getattr(import_module(dotted), name) if find_spec(dotted) else missing


@cache
def _numbers(path: Path) -> pd.DataFrame:
    import pandas as pd

    if not path.is_file():
        return pd.DataFrame(columns=["table", "row", "model", "metric", "value", "spread"])
    return pd.read_csv(path, dtype={"value": float, "spread": float})


@cache
def _printed(path: Path) -> Printed:
    return _numbers(path).set_index(["table", "row", "metric", "model"])["value"].to_dict()
