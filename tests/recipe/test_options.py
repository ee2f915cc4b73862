"""Options as the keyword arguments of a constructor."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from kattn_cli.recipe.options import arguments, option_faults, option_names, with_defaults


class Thing:
    """With options of all kinds, and a width given by its caller."""

    def __init__(
        self,
        width: int,
        *,
        root: str | None = None,
        lambda_: Annotated[float, Field(gt=0)] = 0.5,
        mode: Literal["fast", "exact"] = "fast",
        guessed=3,
    ) -> None:
        self.lambda_ = lambda_


class Plain:
    """Without a constructor of its own."""


GIVEN = ("width",)


def faults(**options: object) -> dict[str, str]:
    return {".".join(fault.path): fault.message for fault in option_faults(Thing, options, ("data",), GIVEN)}


def test_names_and_defaults_in_the_constructors_order() -> None:
    assert option_names(Thing, GIVEN) == ["root", "lambda", "mode", "guessed"]
    complete = with_defaults(Thing, {"mode": "exact", "lambda": 2.0}, GIVEN)
    assert list(complete.items()) == [("root", None), ("lambda", 2.0), ("mode", "exact"), ("guessed", 3)]
    assert option_names(Plain) == []
    assert with_defaults(Plain, {}) == {}


def test_faults() -> None:
    assert faults(root="/data", mode="exact") == {}
    assert faults(root=5, mode="fats", guessed="three", lmbda=1.0) == {
        "data.root": "expected text, not 5",
        "data.mode": 'expected one of fast, exact, not "fats"; did you mean "fast"?',
        "data.guessed": 'expected a whole number, not "three"',
        "data.lmbda": 'unknown key; did you mean "lambda"?',
    }
    assert faults(**{"lambda": 0.0}) == {"data.lambda": "must be greater than 0, not 0.0"}
    assert [fault.path for fault in option_faults(Thing, {}, ())] == [("width",)]


def test_reserved_words_lose_their_underscore_in_recipes_only() -> None:
    assert Thing(4, **arguments(Thing, {"lambda": 2.0, "mode": "exact"})).lambda_ == 2.0
