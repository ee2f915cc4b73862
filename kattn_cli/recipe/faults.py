"""The words in which the faults of a recipe are told."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kattn_cli.errors import did_you_mean
from kattn_cli.recipe.strict_yaml import Document, Fault, KeyPath

_EXPECTED = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "model": "a mapping of keys",
    "dict": "a mapping of keys",
    "list": "a list",
}
_BOUNDS = {
    "greater_than": ("gt", "must be greater than"),
    "greater_than_equal": ("ge", "must be at least"),
    "less_than": ("lt", "must be less than"),
    "less_than_equal": ("le", "must be at most"),
}


def faults_of(error: ValidationError, prefix: KeyPath, section: object) -> list[Fault]:
    """Pydantic's errors in the words of a recipe; ``section`` is the model that was being filled."""
    faults: dict[KeyPath, Fault] = {}
    for details in error.errors(include_url=False):
        path = (*prefix, *(part for part in details["loc"] if part != "[key]" and part not in ("int", "str")))
        faults.setdefault(path, Fault(path, _describe(details, section)))
    return list(faults.values())


def _describe(details: ErrorDetails, section: object) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key{did_you_mean(str(details['loc'][-1]), _known_keys(section))}"
    if kind == "missing":
        return "is missing"
    if kind in _BOUNDS:
        bound, words = _BOUNDS[kind]
        return f"{words} {context[bound]:g}, not {show(value)}"
    if kind == "literal_error":
        choices = context["expected"].replace("'", "").replace(" or ", ", ").split(", ")
        hint = did_you_mean(value, choices) if isinstance(value, str) else ""
        return f"expected one of {', '.join(choices)}, not {show(value)}{hint}"
    if kind == "finite_number":
        return f"must be a finite number, not {show(value)}"
    if kind == "string_pattern_mismatch":
        return f"expected letters, digits and . _ + - with / between parts, not {show(value)}"
    if kind == "string_too_long":
        return f"must be at most {context['max_length']} characters long"
    expected = _EXPECTED.get(kind.split("_")[0])
    return f"expected {expected}, not {show(value)}" if expected else details["msg"]


def _known_keys(section: object) -> list[str]:
    if not (isinstance(section, type) and issubclass(section, BaseModel)):
        return []
    return [info.alias or name for name, info in section.model_fields.items()]


def show(value: Any) -> str:
    """A value as a recipe would spell it, short enough for one line."""
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "nothing"
    if isinstance(value, dict | list):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, str):
        printable = "".join(letter if letter.isprintable() else "?" for letter in value)
        return f'"{printable[:37]}…"' if len(printable) > 40 else f'"{printable}"'
    return str(value)[:40]


def report(name: str, document: Document) -> str:
    """All faults of a document in one message: place, key and what is wrong, in aligned columns."""
    faults = list(dict.fromkeys(document.faults))
    rows = sorted(((_place(fault, document), _dotted(fault.path), fault.message) for fault in faults), key=_order)
    count = "1 fault" if len(rows) == 1 else f"{len(rows)} faults"
    widths = [max(len(row[column]) for row in rows) for column in (0, 1)]
    lines = ("  ".join(_cells(row, widths)).rstrip() for row in rows)
    return "\n".join([f"{name}: {count}, nothing was started", *(f"  {line}" for line in lines)])


def _cells(row: tuple[str, str, str], widths: list[int]) -> Iterable[str]:
    padded = [row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2]]
    return [cell for cell, width in zip(padded, [*widths, 1], strict=True) if width]


def _place(fault: Fault, document: Document) -> str:
    if fault.place:
        return fault.place
    for length in range(len(fault.path), 0, -1):
        if place := document.places.get(fault.path[:length]):
            return place
    return ""


def _order(row: tuple[str, str, str]) -> tuple[int, str]:
    _, _, number = row[0].partition("line ")
    return (int(number) if number.isdigit() else 10**9, row[1])


def _dotted(path: KeyPath) -> str:
    return ".".join(show(part).strip('"') for part in path)
