"""YAML without its surprises: the subset of YAML 1.2 that a recipe needs, with the line of every key.

PyYAML alone reads ``3e-4`` as a string, ``no`` as false and ``1:30`` as ninety, and keeps the last of two
equal keys. Here ``3e-4`` is a number, only ``true`` and ``false`` are booleans, and a repeated key is a fault.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import yaml

KeyPath = tuple[Any, ...]

MAX_DEPTH = 32
COMMAND_LINE = "command line"
"""The place of a key that no file has."""


@dataclass(frozen=True)
class Fault:
    """One thing wrong with a recipe: the path of the key, what is wrong, and where it stands."""

    path: KeyPath
    message: str
    place: str = ""


@dataclass
class Document:
    """Plain data, the place (``line 4``) of every path in it, and the faults found on the way.

    ``moved``: the paths in the file of keys that stand elsewhere there, as those of a variant do.
    """

    data: Any = None
    places: dict[KeyPath, str] = field(default_factory=dict)
    faults: list[Fault] = field(default_factory=list)
    moved: dict[KeyPath, KeyPath] = field(default_factory=dict)


class _Refused(Exception):
    """The one fault of a document that is not looked at any further."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(fault.message)
        self.fault = fault


class _Loader(yaml.SafeLoader):
    """The safe loader with the scalar types of YAML 1.2's core schema alone."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 (PyYAML's own class attribute)


_NUMBER = r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
for _tag, _pattern, _first in [
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("bool", r"true|True|TRUE|false|False|FALSE", list("tTfF")),
    ("int", r"[-+]?[0-9]+", list("-+0123456789")),
    ("float", rf"{_NUMBER}|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)", list("-+.0123456789")),
]:
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), _first)


def parse(text: str) -> Document:
    """Read ``text``; what cannot be read becomes a fault of the document, never an exception."""
    document = Document()
    try:
        loader = _Loader(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        problem = " ".join(str(error.problem or error.context).split())
        document.faults.append(Fault((), f"is not YAML: {problem}", _place(mark) if mark else ""))
    except yaml.YAMLError as error:
        document.faults.append(Fault((), f"is not YAML: {' '.join(str(error).split())}"))
    except RecursionError:
        document.faults.append(Fault((), "is nested too deeply"))
    else:
        try:
            document.data = _build(root, (), document, set()) if root is not None else None
        except _Refused as error:
            # Its other faults are left out: a few lines of aliases can stand for billions.
            document.faults = [error.fault]
    return document


def _build(node: yaml.Node, path: KeyPath, document: Document, seen: set[int]) -> Any:
    place = _place(node.start_mark)
    if id(node) in seen:
        # The node is the anchor's: where the alias stands, only what is around it knows.
        place = document.places.get(path) or document.places.get(path[:-1], place)
        raise _Refused(Fault(path, "anchors and aliases are not used in recipes; write it out", place))
    document.places.setdefault(path, place)
    seen.add(id(node))
    if len(path) > MAX_DEPTH:
        raise _Refused(Fault(path[:1], f"is nested more than {MAX_DEPTH} levels deep", place))
    if isinstance(node, yaml.MappingNode):
        return _build_mapping(node, path, document, seen)
    if isinstance(node, yaml.SequenceNode):
        return [_build(item, (*path, index), document, seen) for index, item in enumerate(node.value)]
    return _scalar(node, path, document)


def _build_mapping(node: yaml.MappingNode, path: KeyPath, document: Document, seen: set[int]) -> dict[Any, Any]:
    mapping: dict[Any, Any] = {}
    for key_node, value_node in node.value:
        place = _place(key_node.start_mark)
        if not isinstance(key_node, yaml.ScalarNode):
            document.faults.append(Fault(path, "a key must be a plain word or number", place))
            continue
        key = _scalar(key_node, path, document)
        inside = (*path, key)
        if key in mapping:
            document.faults.append(Fault(inside, f"is given twice, first on {document.places[inside]}", place))
            continue
        document.places[inside] = place
        mapping[key] = _build(value_node, inside, document, seen)
    return mapping


def _scalar(node: yaml.Node, path: KeyPath, document: Document) -> Any:
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    text = node.value
    try:
        if kind == "int":
            return int(text)
        if kind == "float":
            return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    except ValueError:
        document.faults.append(Fault(path, f"cannot be read as a number: {text[:20]}", _place(node.start_mark)))
        return None
    if kind in ("null", "bool"):
        return text.lower() == "true" if kind == "bool" else None
    if kind != "str":
        document.faults.append(Fault(path, f"the tag {node.tag} is not used in recipes", _place(node.start_mark)))
    return text


def _place(mark: yaml.Mark) -> str:
    return f"line {mark.line + 1}"
