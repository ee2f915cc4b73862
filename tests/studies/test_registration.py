"""What a study said when it began is kept, and a change afterwards is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from studies.test_study import loaded

from kattn_cli.errors import RunError
from kattn_cli.studies.registration import REGISTERED, changes, register
from kattn_cli.studies.study import Measure, Study


def with_margin(study: Study, margin: float) -> Study:
    measures = {**study.measures, "clean": Measure(run="eval", margin=margin)}
    return study.model_copy(update={"measures": measures})


def test_the_first_wording_is_kept_and_the_same_one_adds_nothing(tmp_path: Path) -> None:
    study = loaded(tmp_path)
    (first,) = register(study, tmp_path)
    assert register(study, tmp_path) == [first]
    assert first.digest == study.digest
    assert "margin: 1" in first.text


def test_a_change_is_shown_as_a_difference(tmp_path: Path) -> None:
    study = loaded(tmp_path)
    register(study, tmp_path)
    known = register(with_margin(study, 2.5), tmp_path)
    ((later, text),) = changes(known)
    assert later is known[-1]
    assert [line for line in text.splitlines() if line[0] in "+-" and line[:3] not in ("+++", "---")] == [
        "-    margin: 1.0",
        "+    margin: 2.5",
    ]


def test_back_to_the_first_wording_is_a_change_too(tmp_path: Path) -> None:
    study = loaded(tmp_path)
    for margin in (1, 2.5, 1):
        known = register(with_margin(study, margin), tmp_path)
    assert len(known) == 3


@pytest.mark.parametrize("text", ["", "[", "{}1", '[{"digest": 1}]', "3"])
def test_a_damaged_registration_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / REGISTERED).write_text(text)
    with pytest.raises(RunError, match="is damaged: it does not hold what the study said"):
        register(loaded(tmp_path), tmp_path)
