"""What ``kattn complexity`` measures: which mechanisms, in which versions, at which sizes."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count, product
from typing import NamedTuple

import torch

from kattn_cli.attention import MECHANISMS, attention_class
from kattn_cli.attention.options import all_options, check_options
from kattn_cli.costs.timing import Pass
from kattn_cli.errors import RecipeError
from kattn_cli.experiment import recipes
from kattn_cli.kernels.choice import Version
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.options import arguments
from kattn_cli.recipe.schema import Mechanism
from kattn_cli.recipe.strict_yaml import parse

CAUSAL_PRIMAL = "primal projection=data-independent"
"""The one of primal's forms that can be causal."""
BASELINE = "softmax"
BASELINE_VERSIONS: tuple[Version, ...] = ("fast", "slow")
"""PyTorch's fused attention, which a user would otherwise pick, and the N × N matrix."""


class Setting(NamedTuple):
    """All that is fixed while N grows, but for the pass."""

    dim: int
    heads: int
    batch: int
    causal: bool
    dtype: torch.dtype


@dataclass(frozen=True)
class Grid:
    """Every combination of these is measured."""

    lengths: tuple[int, ...]
    dims: tuple[int, ...]
    heads: tuple[int, ...]
    batches: tuple[int, ...]
    passes: tuple[Pass, ...]
    causal: tuple[bool, ...]
    dtypes: tuple[torch.dtype, ...]

    def settings(self) -> Iterator[Setting]:
        """Every combination but for N and the pass."""
        for one in product(self.dtypes, self.causal, self.dims, self.heads, self.batches):
            dtype, causal, dim, heads, batch = one
            yield Setting(dim, heads, batch, causal, dtype)


class Competitor(NamedTuple):
    """A mechanism in one version of its operators."""

    label: str
    version: Version
    mechanism: Mechanism

    @property
    def options(self) -> str:
        """The options that are not the default, ``iterations=6``."""
        parameters = inspect.signature(attention_class(self.mechanism.name).__init__).parameters
        given = arguments(attention_class(self.mechanism.name), self.mechanism.options)
        changed = {key.removesuffix("_"): one for key, one in given.items() if parameters[key].default != one}
        return " ".join(f"{key}={value}" for key, value in changed.items())


def competitors(
    references: Sequence[str], names: Sequence[str], versions: Sequence[Version], *, causal: bool
) -> list[Competitor]:
    """The baselines, then the mechanisms of the recipes and those named, each in every one of the versions.

    Where none is given, those of the papers, and where ``causal`` is asked for the causal form of primal too.

    Raises:
        RecipeError: if one does not exist, or its options are at fault.
    """
    if not references and not names:
        names = (*MECHANISMS, CAUSAL_PRIMAL) if causal else tuple(MECHANISMS)
    labelled = named_mechanisms([BASELINE, *names], references)
    chosen = [Competitor(BASELINE, version, labelled[BASELINE]) for version in BASELINE_VERSIONS]
    is_asked = BASELINE in names or any(labelled[BASELINE] == one for one in _of_recipes(references))
    for label, mechanism in labelled.items():
        if label != BASELINE or is_asked:
            chosen += [Competitor(label, version, mechanism) for version in versions]
    return list({(one.label, one.version): one for one in chosen}.values())


def named_mechanisms(names: Iterable[str], references: Sequence[str] = ()) -> dict[str, Mechanism]:
    """By label: the mechanism's name; where one has different options, the later are numbered.

    Args:
        names: ``rpc``, ``my_file.py:MyAttention``, or with options ``rpc iterations=6``.

    Raises:
        RecipeError: if one does not exist, or its options are at fault.
    """
    chosen: dict[str, Mechanism] = {}
    for mechanism in (*map(_by_name, names), *_of_recipes(references)):
        if mechanism not in chosen.values():
            name = mechanism.name.rpartition(":")[2]
            numbered = (name if k == 1 else f"{name}#{k}" for k in count(1))
            chosen[next(label for label in numbered if label not in chosen)] = mechanism
    return chosen


def _of_recipes(references: Sequence[str]) -> list[Mechanism]:
    found = []
    for path in (path for reference in references for path in find_recipes(reference)):
        attention = recipes.load(path, weights=False, data=False).attention
        found += [Mechanism(name=one.name, **one.options) for one in (attention, *attention.layers.values())]
    return found


def _by_name(text: str) -> Mechanism:
    name, *words = re.split(r"\s+(?=\w+=)", text.strip())
    options = {key: parse(value).data for key, _, value in (word.partition("=") for word in words)}
    if faults := check_options(name, options, ()):
        fault = faults[0]
        key = "".join(f" {part}:" for part in fault.path if part != "name")
        raise RecipeError(f"--attention {name}:{key} {fault.message}")
    return Mechanism(name=name, **all_options(name, options))
