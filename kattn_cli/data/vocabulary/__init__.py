"""Vocabularies: what the tokens of a text stand for; one kind, one file."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from kattn_cli.data.vocabulary.bpe import Bpe
from kattn_cli.data.vocabulary.bytes import Bytes
from kattn_cli.data.vocabulary.characters import Characters
from kattn_cli.data.vocabulary.gpt2 import gpt2
from kattn_cli.data.vocabulary.vocabulary import Vocabulary, VocabularyKind
from kattn_cli.data.vocabulary.words import Words
from kattn_cli.errors import DataError, did_you_mean

__all__ = [
    "VOCABULARIES",
    "VOCABULARY_FILE",
    "Vocabulary",
    "build_vocabulary",
    "missing_vocabulary",
    "read_vocabulary",
    "vocabulary_from",
    "vocabulary_options",
]

VOCABULARIES: dict[str, type[VocabularyKind]] = {
    "bytes": Bytes,
    "characters": Characters,
    "words": Words,
    "bpe": Bpe,
}
VOCABULARY_FILE = "vocabulary.json"
"""The name of a run's vocabulary in its folder."""

_WHAT_TO_GIVE = f"give a run's folder, a {VOCABULARY_FILE}, a tokenizer.json, or gpt2"


def vocabulary_options(kind: str, size: int | None, min_count: int, given: str | None) -> dict[str, int]:
    """Return the options of a vocabulary that a recipe asks for, as :func:`build_vocabulary` takes them.

    Args:
        given: ``vocabulary_from`` of the recipe, with which there is nothing to build.

    Raises:
        ValueError: if an option is of no use, in the recipe's words.
    """
    options = {} if size is None else {"size": size}
    options |= {"min_count": min_count} if min_count > 1 else {}
    for option in options:
        key = "vocabulary_size" if option == "size" else option
        if given:
            raise ValueError(f"data.{key}: is of no use with vocabulary_from; leave one of them out")
        if option not in VOCABULARIES[kind].options:
            kinds = " and ".join(name for name, one in VOCABULARIES.items() if option in one.options)
            raise ValueError(f"data.{key}: is for a vocabulary of {kinds}, not of {kind}")
    return options


def build_vocabulary(kind: str, options: Mapping[str, int], texts: Iterable[str]) -> VocabularyKind:
    """Return a vocabulary of a training text.

    Args:
        kind: one of :data:`VOCABULARIES`.
        options: ``size`` and ``min_count``, where the kind heeds them.
        texts: the text, in pieces, cut by :func:`~kattn_cli.data.vocabulary.vocabulary.parts`; whole lines will do.

    Raises:
        ValueError: if the kind does not take an option, or no vocabulary of that size can be.
    """
    cls = VOCABULARIES[kind]
    for name in options:
        if name not in cls.options:
            raise ValueError(f"a vocabulary of {kind} takes no {name}")
    return cls.build(texts, **options)


def vocabulary_from(value: Any) -> VocabularyKind:
    """Return the vocabulary whose ``to_json`` gave ``value``, or that of a ``tokenizer.json``'s content.

    Raises:
        DataError: if it is neither, in one line that names no file.
    """
    if not isinstance(value, dict) or not {"kind", "model"} & set(value):
        raise DataError(f"is neither a {VOCABULARY_FILE} nor a tokenizer.json; {_WHAT_TO_GIVE}")
    if "kind" not in value:
        value = {"kind": Bpe.kind, "tokenizer": value}
    kind = str(value["kind"])
    if kind not in VOCABULARIES:
        raise DataError(
            f"has a kind {kind}; expected one of {', '.join(VOCABULARIES)}{did_you_mean(kind, VOCABULARIES)}"
        )
    try:
        return VOCABULARIES[kind].from_json(value)
    except KeyError as error:
        raise DataError(f"is no vocabulary of {kind}: it has no {error.args[0]}") from None
    except (TypeError, ValueError) as error:
        raise DataError(f"is no vocabulary of {kind}: {error}") from None


def read_vocabulary(given: str) -> VocabularyKind:
    """Return the vocabulary in a run's folder, in a ``vocabulary.json`` or ``tokenizer.json``, or ``gpt2``.

    Raises:
        DataError: in one line, if it is not there or cannot be read as one.
    """
    if missing := missing_vocabulary(given):
        raise DataError(missing)
    path = _file(given)
    if path is None:
        return gpt2()
    try:
        value = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"{path}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise DataError(f"{path}: is no JSON, or was cut short; {_WHAT_TO_GIVE}") from None
    try:
        return vocabulary_from(value)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None


def missing_vocabulary(given: str) -> str:
    """Return an empty string if :func:`read_vocabulary` has something to read; else what is missing, in one line."""
    path = _file(given)
    if path is None or path.is_file():
        return ""
    if path.parent.is_dir() and path.parent == Path(given).expanduser():
        return f"{path.parent}: has no {VOCABULARY_FILE}; {_WHAT_TO_GIVE}"
    return f"{path}: does not exist; {_WHAT_TO_GIVE}"


def _file(given: str) -> Path | None:
    """Return the file of a vocabulary; None for GPT-2's, whose name gives way to a file or folder of that name."""
    path = Path(given).expanduser()
    if given == "gpt2" and not path.exists():
        return None
    return path / VOCABULARY_FILE if path.is_dir() else path
