"""The verdicts of a study: crossed where answers were kept, pooled where not, corrected in two families."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from studies.test_study import STUDY, loaded

from kattn_cli.statistics.crossed import crossed
from kattn_cli.statistics.two_way import compare
from kattn_cli.statistics.verdict import Verdict
from kattn_cli.studies.evidence import Numbers
from kattn_cli.studies.judgement import effects, judge
from kattn_cli.studies.study import Study


def answers(accuracy: float, seed: int, images: int = 2000) -> Numbers:
    generator = np.random.default_rng(seed)
    hard = np.random.default_rng(99).random(images)
    right = {one: (hard < accuracy + 0.02 * generator.standard_normal(images)).astype(float) for one in range(6)}
    return Numbers({one: 100 * float(bits.mean()) for one, bits in right.items()}, right, {"images": images})


def scalars(*values: float) -> Numbers:
    return Numbers(dict(enumerate(values)))


@pytest.fixture
def study(tmp_path: Path) -> Study:
    return loaded(tmp_path)


def test_answers_are_crossed_and_numbers_pooled_over_all_arms() -> None:
    first, second = answers(0.8, 1), answers(0.7, 2)
    arms = {
        "a": first,
        "b": second,
        "c": scalars(1.0, 2.0, 4.0),
        "d": scalars(1.5, 2.0, 4.5),
        "e": scalars(0.0, 5.0, 1.0),
    }
    found = effects([("a", "b"), ("d", "c"), ("e", "c")], arms)
    assert found["a", "b"] == crossed(first.right, second.right)
    values = {arm: arms[arm].values for arm in "cde"}
    assert [found["d", "c"], found["e", "c"]] == compare(values, [("d", "c"), ("e", "c")])


def test_arms_without_a_shared_seed_have_no_effect() -> None:
    assert effects([("a", "b")], {"a": Numbers({0: 1.0}), "b": Numbers({1: 1.0})}) == {}


def test_the_primary_comparisons_come_first_and_are_a_family_of_their_own(study: Study) -> None:
    same, worse = answers(0.8, 3), answers(0.5, 4)
    found = {"clean": {"a": same, "b": answers(0.8, 5), "b_as_a": worse}, "pgd": {"a": same, "b": same}, "loss": {}}
    judged = judge(study, found)
    assert [(one.comparison.first, one.measure, one.comparison.primary) for one in judged] == [
        ("b", "clean", True),
        ("b", "pgd", True),
        ("b_as_a", "clean", False),
    ]
    assert judged[0].decision.verdict is Verdict.equivalent
    assert judged[2].decision.verdict is Verdict.worse
    alone = judge(study.model_copy(update={"comparisons": study.comparisons[1:]}), found)
    assert alone[0].decision.p_apart == judged[2].decision.p_apart, "the primary family does not weigh on the other"


def test_what_is_published_goes_into_the_question(study: Study) -> None:
    found = {"clean": {"a": answers(0.8, 3), "b": answers(0.8, 5)}, "pgd": {}, "loss": {}}
    (one,) = judge(study, found)
    assert one.decision.question.published == 0.5
    assert one.means == pytest.approx(tuple(np.mean(list(found["clean"][arm].values.values())) for arm in ("b", "a")))


def test_a_measure_without_a_margin_judges_nothing(tmp_path: Path) -> None:
    study = loaded(tmp_path, STUDY.replace(" margin: 0.1,", "").replace("arms: [b]}", "arms: [a, b]}"))
    same = answers(0.8, 3)
    found = {"clean": {"a": same, "b": same}, "loss": {"a": scalars(1.0, 1.1, 1.2), "b": scalars(1.3, 1.2, 1.0)}}
    assert [one.measure for one in judge(study, {**found, "pgd": {}})] == ["clean"]


def test_less_is_better_where_the_study_says_so(tmp_path: Path) -> None:
    text = STUDY.replace("arms: [b]}", "arms: [a, b]}").replace("margin: 0.1, lower", "margin: 0.01, lower")
    study = loaded(tmp_path, text)
    found = {"loss": {"a": scalars(1.0, 1.1, 1.05), "b": scalars(0.5, 0.61, 0.55)}, "clean": {}, "pgd": {}}
    (one,) = judge(study, found)
    assert one.decision.verdict is Verdict.better
    assert one.effect.estimate < 0
