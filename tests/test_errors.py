"""What is said when the user errs or stops."""

from __future__ import annotations

import pytest

from kattn_cli.errors import Stopped, did_you_mean, stoppable


def test_the_nearest_name() -> None:
    assert did_you_mean("depht", ["dim", "depth"]) == '; did you mean "depth"?'
    assert did_you_mean("zzz", ["dim", "depth"]) == ""


def test_ctrl_c_says_what_was_kept() -> None:
    with pytest.raises(Stopped, match=r"^Stopped; the rows are kept$") as caught, stoppable("the rows are kept"):
        raise KeyboardInterrupt
    assert caught.value.code == 130
