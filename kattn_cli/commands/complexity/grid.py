"""What ``kattn complexity`` measures: which mechanisms, in which versions, at which sizes."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from kattn_cli.attention import MECHANISMS, attention_class
from kattn_cli.costs.timing import Pass
from kattn_cli.experiment.mechanisms import named_mechanisms, of_recipes
from kattn_cli.kernels.choice import Version
from kattn_cli.recipe.options import arguments
from kattn_cli.recipe.schema import Mechanism

CAUSAL_PRIMAL = "primal projection=data-independent"
"""The one form of Primal-Attention that can be causal."""
BASELINE = "softmax"
BASELINE_VERSIONS: tuple[Version, ...] = ("fast", "slow")
"""PyTorch's fused attention, which a user would otherwise pick, and the N × N matrix."""


class Setting(NamedTuple):
    """What is fixed while N grows, but for the pass."""

    dim: int
    heads: int
    batch: int
    causal: bool
    dtype: str


@dataclass(frozen=True)
class Grid:
    """The sizes of which every combination is measured."""

    lengths: tuple[int, ...]
    dims: tuple[int, ...]
    heads: tuple[int, ...]
    batches: tuple[int, ...]
    passes: tuple[Pass, ...]
    causal: tuple[bool, ...]
    dtypes: tuple[str, ...]

    def settings(self) -> Iterator[Setting]:
        """Yield every combination but for N and the pass."""
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
    """Return the baselines, then the mechanisms of the recipes and those named, each in every version.

    Where none is given, these are the papers' and, where ``causal`` is asked for, the causal form of primal.

    Raises:
        RecipeError: if one does not exist, or its options are at fault.
    """
    if not references and not names:
        names = (*MECHANISMS, CAUSAL_PRIMAL) if causal else MECHANISMS
    labelled = named_mechanisms([BASELINE, *names], references)
    chosen = [Competitor(BASELINE, version, labelled[BASELINE]) for version in BASELINE_VERSIONS]
    is_asked = BASELINE in names or any(labelled[BASELINE] == one for one in of_recipes(references))
    for label, mechanism in labelled.items():
        if label != BASELINE or is_asked:
            chosen += [Competitor(label, version, mechanism) for version in versions]
    return list({(one.label, one.version): one for one in chosen}.values())
