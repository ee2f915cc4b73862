"""Which version computes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from kattn_cli.errors import KattnError
from kattn_cli.kernels.choice import operators, version


def test_versions_nest() -> None:
    assert version() == "fast"
    with operators("slow"):
        assert version() == "slow"
        with operators("plain"):
            assert version() == "plain"
        assert version() == "slow"
    assert version() == "fast"


def test_an_unknown_version() -> None:
    message = 'KATTN_OPERATORS=slo: expected one of slow, plain, fast; did you mean "slow"'
    with pytest.raises(KattnError, match=message), operators("slo"):
        pass


def test_the_environment_chooses() -> None:
    code = "from kattn_cli.kernels.choice import version; print(version())"
    environment = {**os.environ, "KATTN_OPERATORS": "slow"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "slow\n"
