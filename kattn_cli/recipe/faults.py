"""What is wrong with a recipe, in its own words: place, key and what was expected."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from kattn_cli.errors import RecipeError, did_you_mean
from kattn_cli.recipe.strict_yaml import COMMAND_LINE, Document, Fault, KeyPath

MOST_SHOWN = 50
"""Faults that a message lists."""
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
    """Return pydantic's errors in the words of a recipe; ``section`` is the model that was being filled."""
    faults: dict[KeyPath, Fault] = {}
    for details in error.errors(include_url=False):
        path = (*prefix, *(part for part in details["loc"] if part != "[key]" and part not in ("int", "str")))
        faults.setdefault(path, Fault(path, _describe(details, section)))
    return list(faults.values())


def _describe(details: ErrorDetails, section: object) -> str:
    kind, value, context = details["type"], details["input"], details.get("ctx", {})
    if kind == "extra_forbidden":
        return f"unknown key{did_you_mean(str(details['loc'][-1]), _known_keys(_holder(section, details['loc'])))}"
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


def _holder(section: object, path: tuple[int | str, ...]) -> object:
    """Return the model in which the key at ``path`` stands, inside the mappings and lists of ``section``."""
    for part in path[:-1]:
        if not (isinstance(section, type) and issubclass(section, BaseModel)):
            break
        if isinstance(part, str) and part in section.model_fields:
            section = _model_in(section.model_fields[part].annotation) or section
    return section


def _model_in(annotation: object) -> type[BaseModel] | None:
    """Return the model that ``Mapping[str, Model]``, ``list[Model]`` or ``Model`` holds."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return annotation
    return next((model for inner in get_args(annotation) if (model := _model_in(inner))), None)


def _known_keys(section: object) -> list[str]:
    if not (isinstance(section, type) and issubclass(section, BaseModel)):
        return []
    return [info.alias or name for name, info in section.model_fields.items()]


def show(value: Any) -> str:
    """Return a value as a recipe would spell it, short enough for one line."""
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


Row = tuple[str, str, str]


class RecipeFaults(RecipeError):
    """All faults of a recipe, or of several in one file: place, key and what is wrong, in aligned columns."""

    def __init__(self, name: str, file: str, rows: Iterable[Row]) -> None:
        self.file = file
        self.rows = sorted(dict.fromkeys(rows), key=_order)
        count = "1 fault" if len(self.rows) == 1 else f"{len(self.rows):,} faults"
        shown, rest = self.rows[:MOST_SHOWN], len(self.rows) - MOST_SHOWN
        widths = [max(len(row[column]) for row in shown) for column in (0, 1)]
        lines = ["  ".join(_cells(row, widths)).rstrip() for row in shown]
        if rest > 0:
            lines.append(f"… and {rest:,} more")
        super().__init__("\n".join([f"{name}: {count}, nothing was started", *(f"  {line}" for line in lines)]))

    @classmethod
    def of(cls, name: str, document: Document) -> RecipeFaults:
        """Return the error that names the faults of a recipe's document: of a file, or of ``file/variant``."""
        variant = f"/{document.moved[()][-1]}" if document.moved else ""
        rows = [
            (_place(fault, document), _dotted(_in_file(fault.path, document)), fault.message)
            for fault in document.faults
        ]
        return cls(name, name.removesuffix(variant), rows)


def all_of(errors: Iterable[RecipeError]) -> RecipeError:
    """Return one error that says what several say; the faults of one file stand together, each once."""
    said: dict[str, list[Row]] = {}
    for error in errors:
        if isinstance(error, RecipeFaults):
            said.setdefault(error.file, []).extend(error.rows)
        else:
            said.setdefault(str(error), [])
    return RecipeError("\n".join(str(RecipeFaults(key, key, rows)) if rows else key for key, rows in said.items()))


def _cells(row: Row, widths: list[int]) -> Iterable[str]:
    padded = [row[0].ljust(widths[0]), row[1].ljust(widths[1]), row[2]]
    return [cell for cell, width in zip(padded, [*widths, 1], strict=True) if width]


def _place(fault: Fault, document: Document) -> str:
    if fault.place:
        return fault.place
    for length in range(len(fault.path), -1 if document.moved else 0, -1):
        if place := document.places.get(fault.path[:length]):
            return place
    return ""


def _in_file(path: KeyPath, document: Document) -> KeyPath:
    """Return the path at which a key stands in the file, or the path itself where a command line set it."""
    ancestors = [path[:length] for length in range(len(path), 0, -1)]
    known = next((one for one in ancestors if one in document.places), None)
    if known and document.places[known] == COMMAND_LINE:
        return path
    moved = next((one for one in ancestors if one in document.moved), None if known else ())
    return (*document.moved.get(moved, ()), *path[len(moved) :]) if moved is not None else path


def _order(row: Row) -> tuple[int, str]:
    _, _, number = row[0].partition("line ")
    return (int(number) if number.isdigit() else 10**9, row[1])


def _dotted(path: KeyPath) -> str:
    return ".".join(show(part).strip('"') for part in path)
