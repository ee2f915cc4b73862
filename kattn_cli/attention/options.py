"""The options of a mechanism: the keyword arguments of its constructor that the model does not give."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from torch import nn

from kattn_cli.attention import attention_class
from kattn_cli.attention.user_file import names_a_file, one_line
from kattn_cli.errors import RecipeError
from kattn_cli.recipe.options import arguments, option_faults, with_defaults
from kattn_cli.recipe.strict_yaml import Fault, KeyPath

_GIVEN_BY_THE_MODEL = ("dim", "heads", "seq_len", "causal")


def check_options(name: str, options: Mapping[str, Any], path: KeyPath) -> list[Fault]:
    """Return what is wrong with mechanism ``name`` and its ``options`` in a recipe, at ``path``."""
    try:
        cls = attention_class(name)
    except RecipeError as error:
        return [Fault((*path, "name"), str(error))]
    parameters = inspect.signature(cls.__init__).parameters
    if missing := [key for key in ("seq_len", "causal") if key not in parameters]:
        contract = "__init__(self, dim, heads, *, seq_len, causal=False, …)"
        return [Fault((*path, "name"), f"must be built by {contract}; {name} takes no {' and no '.join(missing)}")]
    return option_faults(cls, options, path, _GIVEN_BY_THE_MODEL)


def all_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` with every default written out, under their names in a recipe."""
    return with_defaults(attention_class(name), options, _GIVEN_BY_THE_MODEL)


def build_attention(
    name: str, options: Mapping[str, Any], *, dim: int, heads: int, seq_len: int, causal: bool = False
) -> nn.Module:
    """Return the mechanism ``name`` for ``(B, seq_len, dim)``, with ``options`` as in a recipe.

    Raises:
        RecipeError: if the constructor refuses, in its own words.
    """
    cls = attention_class(name)
    try:
        return cls(dim, heads, seq_len=seq_len, causal=causal, **arguments(cls, options))
    except ValueError as error:
        raise RecipeError(f"attention {name}: {error}") from error
    except BaseException as error:
        if not names_a_file(name) or isinstance(error, KeyboardInterrupt):
            raise
        raise RecipeError(f"attention {name}: {one_line(error)}") from error
