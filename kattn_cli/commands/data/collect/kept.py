"""Folders of arrays and facts that a training is gone on with from: NumPy's and JSON's files, which run no code.

stable-baselines3's own files are pickles, and one that somebody else made runs whatever he wants as it is read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np

from kattn_cli.errors import CheckpointError

Arrays = Mapping[str, np.ndarray]
FACTS = "facts.json"
FORMER = ("model.zip", "evaluation.json")
"""Files by which a folder is known in which pickles were kept."""


@dataclass(frozen=True)
class Kept:
    """What :func:`keep` wrote into ``folder``."""

    folder: Path
    facts: dict[str, Any]
    sums: dict[str, str]

    @classmethod
    def read(cls, folder: Path) -> Kept:
        """Return the facts; arrays are read when they are asked for.

        Raises:
            CheckpointError: if the folder has none, has pickles in their place, or they cannot be read.
        """
        path = folder / FACTS
        if not path.exists() and any((folder / name).exists() for name in FORMER):
            raise CheckpointError(
                f"{folder}: was kept by an earlier version as pickles, which are not read, since they could run any "
                f"code; remove {folder.parent} to begin the training anew, or take another --output"
            )
        try:
            read = json.loads(path.read_text(encoding="utf-8"))
            return cls(folder, dict(read["facts"]), {str(name): str(sum_) for name, sum_ in read["sha256"].items()})
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}; {_anew(folder)}") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            raise CheckpointError(f"{path}: is cut short or damaged; {_anew(folder)}") from None

    def arrays(self, name: str) -> dict[str, np.ndarray]:
        """Return the arrays that were kept under ``name``.

        Raises:
            CheckpointError: if their file is gone, or is not the one that was written.
        """
        path = self.folder / f"{name}.npz"
        try:
            content = path.read_bytes()
            if _sum(content) != self.sums.get(path.name):
                raise CheckpointError(f"{path}: is damaged (its checksum is another); {_anew(self.folder)}")
            with np.load(BytesIO(content), allow_pickle=False) as arrays:
                return {key: arrays[key] for key in arrays.files}
        except OSError as error:
            raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}; {_anew(self.folder)}") from None
        except CheckpointError:
            raise
        except Exception:  # of a file that is none of NumPy's, nearly anything
            raise CheckpointError(f"{path}: is no file of plain arrays; {_anew(self.folder)}") from None


def keep(folder: Path, facts: Mapping[str, Any], arrays: Mapping[str, Arrays]) -> None:
    """Write into ``folder``, which is made: ``facts`` as JSON can hold them, and ``arrays`` by their file's name.

    Raises:
        OSError: if it cannot be written.
    """
    folder.mkdir()
    paths = [folder / f"{name}.npz" for name in arrays]
    for path, named in zip(paths, arrays.values(), strict=True):
        np.savez(path, **named)  # type: ignore[arg-type]
    content = {"facts": dict(facts), "sha256": {path.name: _sum(path.read_bytes()) for path in paths}}
    (folder / FACTS).write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def _sum(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _anew(folder: Path) -> str:
    return f"remove {folder.parent} to begin the training anew"
