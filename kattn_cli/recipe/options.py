"""The options of a class are the keyword arguments of its constructor: types, ranges and defaults.

``lambda`` in a recipe is ``lambda_`` in Python, since the bare word is reserved.
"""

from __future__ import annotations

import inspect
import typing
from collections.abc import Collection, Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from kattn_cli.recipe.faults import faults_of
from kattn_cli.recipe.strict_yaml import Fault, KeyPath

_STRICT = ConfigDict(
    extra="forbid", strict=True, allow_inf_nan=False, arbitrary_types_allowed=True, protected_namespaces=()
)


def options_model(cls: type[object], given: Collection[str] = ()) -> type[BaseModel]:
    """Return a pydantic model of the constructor's own keyword arguments, all but those ``given`` by its caller."""
    constructor = cls.__init__
    try:
        hints = typing.get_type_hints(constructor, include_extras=True)
    except NameError:
        hints = {}
    fields: dict[str, Any] = {}
    for name, parameter in inspect.signature(constructor).parameters.items():
        if name in ("self", *given) or parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        default = ... if parameter.default is parameter.empty else parameter.default
        key = name.removesuffix("_")
        inferred = Any if default in (..., None) else type(default)
        fields[f"{key}_option"] = (hints.get(name, inferred), Field(default, alias=key))
    return create_model(f"{cls.__name__}Options", __config__=_STRICT, **fields)


def option_names(cls: type[object], given: Collection[str] = ()) -> list[str]:
    """Return the options as a recipe names them."""
    return [str(info.alias) for info in options_model(cls, given).model_fields.values()]


def option_faults(
    cls: type[object], options: Mapping[str, Any], path: KeyPath, given: Collection[str] = ()
) -> list[Fault]:
    """Return what is wrong with ``options``, as a recipe gives them at ``path``."""
    model = options_model(cls, given)
    try:
        model.model_validate(dict(options))
    except ValidationError as error:
        return faults_of(error, path, model)
    return []


def with_defaults(cls: type[object], options: Mapping[str, Any], given: Collection[str] = ()) -> dict[str, Any]:
    """Return ``options`` and all defaults, under their names in a recipe, in the constructor's order."""
    return options_model(cls, given).model_validate(dict(options)).model_dump(by_alias=True)


def arguments(cls: type[object], options: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``options`` as the constructor's keyword arguments."""
    parameters = inspect.signature(cls.__init__).parameters
    return {key if key in parameters else f"{key}_": value for key, value in options.items()}
