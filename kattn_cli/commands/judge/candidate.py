"""What is judged: a mechanism with its options, and a name of its own for its runs and its page."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from kattn_cli.attention.user_file import names_a_file
from kattn_cli.experiment.mechanisms import mechanism_of
from kattn_cli.recipe.schema import Mechanism

DIGITS = 6


@dataclass(frozen=True)
class Candidate:
    """``label``: the class's name, and letters that change with its file and its options."""

    mechanism: Mechanism
    label: str

    @classmethod
    def of(cls, name: str, options: tuple[str, ...]) -> Candidate:
        """Return the candidate that the words of a command line mean; a path becomes an absolute one.

        Raises:
            RecipeError: if there is none such, or its options are at fault, in one line.
        """
        found = mechanism_of(" ".join([name, *options]), given_as="")
        said = json.dumps(found.options, sort_keys=True, default=str).encode()
        if not names_a_file(found.name):
            return cls(found, f"{found.name}-{hashlib.sha256(said).hexdigest()[:DIGITS]}")
        file, _, short = found.name.rpartition(":")
        path = Path(file).expanduser().resolve()
        digest = hashlib.sha256(path.read_bytes() + said).hexdigest()[:DIGITS]
        return cls(Mechanism(name=f"{path}:{short}", **found.options), f"{short}-{digest}")

    @property
    def name(self) -> str:
        """Return the class's name, or the mechanism's."""
        return self.mechanism.name.rpartition(":")[2]

    @property
    def overrides(self) -> list[str]:
        """Return what makes a recipe's attention this one."""
        options = [f"attention.{key}={json.dumps(value)}" for key, value in self.mechanism.options.items()]
        return [f"attention.name={self.mechanism.name}", *options]
