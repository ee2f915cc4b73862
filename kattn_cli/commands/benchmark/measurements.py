"""``kattn benchmark``: our operators against slow ones and PyTorch's, as ratios within one run.

Each item is a function from a :class:`~kattn_cli.commands.benchmark.place.Place` to what it finds there.
"""

from __future__ import annotations

from collections.abc import Callable

from kattn_cli.commands.benchmark.bandwidth import bandwidth_shares
from kattn_cli.commands.benchmark.growth import decoding, memory_exponents, time_exponents
from kattn_cli.commands.benchmark.outcome import Outcome
from kattn_cli.commands.benchmark.place import Place
from kattn_cli.commands.benchmark.races import RACES
from kattn_cli.commands.benchmark.steps import training_steps

ITEMS: dict[str, Callable[[Place], Outcome]] = {
    **RACES,
    "time_exponents": time_exponents,
    "memory_exponents": memory_exponents,
    "decoding": decoding,
    "bandwidth": bandwidth_shares,
    "training_steps": training_steps,
}
