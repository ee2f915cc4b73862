"""The options of a mechanism are the keyword arguments of its constructor: types, ranges and defaults.

``lambda`` in a recipe is ``lambda_`` in Python, since the bare word is reserved.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from torch import nn

from kattn_cli.attention import attention_class
from kattn_cli.attention.user_file import names_a_file, told
from kattn_cli.errors import RecipeError
from kattn_cli.recipe_faults import faults_of
from kattn_cli.strict_yaml import Fault, KeyPath

_GIVEN_BY_THE_MODEL = ("self", "dim", "heads", "seq_len", "causal")
_STRICT = ConfigDict(
    extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True, protected_namespaces=()
)


def options_model(cls: type[nn.Module]) -> type[BaseModel]:
    """A pydantic model of the constructor's own keyword arguments."""
    try:
        hints = typing.get_type_hints(cls.__init__, include_extras=True)
    except NameError:
        hints = {}
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(cls.__init__).parameters.items():
        if name in _GIVEN_BY_THE_MODEL or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        key = name.removesuffix("_")
        inferred = Any if default in (..., None) else type(default)
        fields[f"{key}_option"] = (hints.get(name, inferred), Field(default, alias=key))
    return create_model(f"{cls.__name__}Options", __config__=_STRICT, **fields)


def check_options(name: str, options: Mapping[str, Any], path: KeyPath) -> list[Fault]:
    """What is wrong with mechanism ``name`` and its ``options`` in a recipe, at ``path``."""
    try:
        cls = attention_class(name)
    except RecipeError as error:
        return [Fault((*path, "name"), str(error))]
    parameters = inspect.signature(cls.__init__).parameters
    if missing := [key for key in ("seq_len", "causal") if key not in parameters]:
        contract = "__init__(self, dim, heads, *, seq_len, causal=False, …)"
        return [Fault((*path, "name"), f"must be built by {contract}; {name} takes no {' and no '.join(missing)}")]
    model = options_model(cls)
    try:
        model.model_validate(dict(options))
    except ValidationError as error:
        return faults_of(error, path, model)
    return []


def all_options(name: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """``options`` with every default written out, under their names in a recipe."""
    return options_model(attention_class(name)).model_validate(dict(options)).model_dump(by_alias=True)


def build_attention(
    name: str, options: Mapping[str, Any], *, dim: int, heads: int, seq_len: int, causal: bool = False
) -> nn.Module:
    """The mechanism ``name`` for ``(B, seq_len, dim)``, with ``options`` as in a recipe.

    Raises:
        RecipeError: if the constructor refuses, in its own words.
    """
    cls = attention_class(name)
    parameters = inspect.signature(cls.__init__).parameters
    arguments = {key if key in parameters else f"{key}_": value for key, value in options.items()}
    try:
        return cls(dim, heads, seq_len=seq_len, causal=causal, **arguments)
    except ValueError as error:
        raise RecipeError(f"attention {name}: {error}") from error
    except Exception as error:
        if not names_a_file(name):
            raise
        raise RecipeError(f"attention {name}: {told(error)}") from error
