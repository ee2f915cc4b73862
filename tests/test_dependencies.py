"""The least versions of what kattn depends on: without the holes that are known, and met by the exact set-up."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

ROOT = Path(__file__).parents[1]

MENDED = {
    "filelock": ("3.20.3", "CVE-2025-68146, CVE-2026-22701: a link put in the lock's place"),
    "jinja2": ("3.1.6", "CVE-2024-56201, CVE-2024-56326, CVE-2025-27516: ways out of the sandbox"),
    "joblib": ("1.2", "CVE-2022-21797: eval of an argument"),
    "markdown-it-py": ("2.2", "CVE-2023-26302, CVE-2023-26303: endless input"),
    "pillow": ("12.2", "CVE-2023-50447, CVE-2024-28219, CVE-2025-48379, CVE-2026-25990, CVE-2026-40192: images"),
    "pyarrow": ("23.0.1", "CVE-2023-47248, CVE-2026-25087: files of others"),
    "pydantic": ("2.4", "CVE-2024-3772: slow on an address of mail"),
    "pytest": ("9.0.3", "CVE-2025-71176: a folder in /tmp whose name is known"),
    "pyyaml": ("5.4", "CVE-2020-14343: code in a file"),
    "ray": ("2.55", "CVE-2025-62593, CVE-2026-27482, CVE-2026-41486: its dashboard, and code in a parquet file"),
    "scikit-learn": ("1.5", "CVE-2024-5206: words of the training text kept"),
    "scipy": ("1.10", "CVE-2023-25399: memory never freed"),
    "torch": ("2.8", "CVE-2025-32434: code in weights read with weights_only; CVE-2025-2953, CVE-2025-3730"),
    "transformers": ("5.0", "CVE-2024-11392 and later: code in files of models"),
}
"""The version of a package that mended what is published of it, by name as :func:`least_versions` has it."""


def least_versions() -> dict[str, Version]:
    """The least version of each package of pyproject.toml, of the extras too."""
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    section = text[text.index("\ndependencies = [") : text.index("[project.scripts]")]
    found: dict[str, Version] = {}
    for line in re.findall(r'"([^"]+)"', section):
        one = Requirement(line)
        for specifier in one.specifier:
            assert specifier.operator == ">=", line
            found[canonicalize_name(one.name)] = Version(specifier.version)
    return found


def exact_versions() -> Iterator[tuple[str, Version]]:
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, _, version = line.partition("==")
            yield canonicalize_name(name), Version(version)


@pytest.mark.parametrize("name", MENDED)
def test_no_least_version_has_a_known_hole(name: str) -> None:
    mended, holes = MENDED[name]
    assert least_versions()[name] >= Version(mended), holes


def test_the_exact_set_up_meets_the_least_versions() -> None:
    exact, least = dict(exact_versions()), least_versions()
    assert len(least) > 30
    older = {name: version for name, version in exact.items() if version < least.get(name, version)}
    assert not older
