"""What an item of the benchmark finds: its measurements, and how they stand to the bounds that we set ourselves."""

from __future__ import annotations

from typing import Literal, NamedTuple

from kattn_cli.runs.csv_rows import Row

Relation = Literal["at least", "at most"]


class Verdict(NamedTuple):
    """A figure with its 95 % interval, the bound it was to keep, if any, and what it is, in words."""

    quantity: str
    ours: str
    against: str
    value: float
    low: float
    high: float
    relation: Relation
    bound: float | None
    says: str

    @property
    def holds(self) -> str:
        """``yes`` or ``no``, by the figure itself; empty without a bound."""
        if self.bound is None:
            return ""
        return "yes" if (self.value >= self.bound) == (self.relation == "at least") else "no"


class Outcome(NamedTuple):
    """Rows of the table, and verdicts."""

    rows: list[Row]
    verdicts: list[Verdict]
