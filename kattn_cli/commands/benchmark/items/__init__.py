"""What ``kattn benchmark`` can measure, by name.

Each item is a function from a :class:`~kattn_cli.commands.benchmark.item.Place` to what it finds there.
"""

from __future__ import annotations

from collections.abc import Callable

from kattn_cli.commands.benchmark.item import Outcome, Place
from kattn_cli.commands.benchmark.items.bandwidth import bandwidth_shares
from kattn_cli.commands.benchmark.items.growth import decoding, memory_exponents, time_exponents
from kattn_cli.commands.benchmark.items.races import RACES
from kattn_cli.commands.benchmark.items.training_steps import training_steps

ITEMS: dict[str, Callable[[Place], Outcome]] = {
    **RACES,
    "time_exponents": time_exponents,
    "memory_exponents": memory_exponents,
    "decoding": decoding,
    "bandwidth": bandwidth_shares,
    "training_steps": training_steps,
}
