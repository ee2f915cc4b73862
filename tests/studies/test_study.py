"""A study's file: what it means, and every fault of it in one message."""

from __future__ import annotations

from pathlib import Path

import pytest

from kattn_cli.errors import RecipeError
from kattn_cli.studies.study import Study, find_study, load_study, number_of, shipped_studies

STUDY = """\
question: Is b better than a?
seeds: [0, 1, 2]
arms:
  a: quickstart/softmax train.epochs=5 name=a
  b: {recipe: quickstart/rpc, about: the pursuit}
  b_as_a: {of: b, run_as: quickstart/symmetric}
measures:
  clean: {run: eval, margin: 1}
  pgd: {run: attack --pgd, margin: 3, images: 20, arms: [a, b], seeds: [0, 1]}
  loss: {run: train, value: loss, margin: 0.1, lower_is_better: true, unit: nats, arms: [b]}
comparisons:
  - {first: b, second: a, primary: true, published: {clean: 0.5}}
  - {first: b_as_a, second: b}
"""


def loaded(folder: Path, text: str = STUDY) -> Study:
    path = folder / "mine.yaml"
    path.write_text(text, encoding="utf-8")
    return load_study(path)


def test_a_study_is_called_like_its_file_and_knows_what_it_compares(tmp_path: Path) -> None:
    study = loaded(tmp_path)
    assert study.name == "mine"
    assert (study.arms["a"].reference, study.arms["a"].overrides) == (
        "quickstart/softmax",
        ("train.epochs=5", "name=a"),
    )
    assert [study.measured(one) for one in study.comparisons] == [["clean", "pgd"], ["clean"]]
    assert study.trained() == {"a": [0, 1, 2], "b": [0, 1, 2]}
    assert study.measures["pgd"].command == ["attack", "--pgd", "--limit", "20"]
    assert [one.file for one in study.measures.values()] == ["eval.csv", "attacks.csv", "metrics.csv"]
    assert study.measures["loss"].command == []


def test_seeds_of_an_arm_are_those_of_the_measures_that_are_taken_of_it(tmp_path: Path) -> None:
    study = loaded(tmp_path, STUDY.replace("clean: {run: eval, margin: 1}", "clean: {run: eval, margin: 1, arms: [b]}"))
    assert study.trained()["a"] == [0, 1]


@pytest.mark.parametrize(
    ("was", "now", "line", "said"),
    [
        ("question: Is", "qestion: Is", 1, 'unknown key; did you mean "question"?'),
        ("margin: 1}", "margin: 0}", 8, "must be greater than 0, not 0"),
        ("margin: 1}", "margn: 1}", 8, 'unknown key; did you mean "margin"?'),
        ("second: a, primary", "second: c, primary", 12, "there is no c"),
        ("second: a, primary", "second: b, primary", 12, "compares b with itself"),
        ("{of: b, run_as: quickstart/symmetric}", "{of: b}", 6, "is missing: the recipe as whose attention"),
        ("{of: b, run_as", "{of: bb, run_as", 6, 'there is no bb; did you mean "b'),
        ("run: train, value", "run: audit, value", 10, "is missing: kattn audit leaves no table of its own name"),
        ("primary: true", "primary: false", 11, "none is primary: say which one answers the question"),
        ("published: {clean", "published: {claen", 12, 'there is no claen; did you mean "clean"?'),
        ("arms: [b]}", "arms: [bee]}", 10, "there is no bee"),
        ("images: 20", "among: clear", 9, 'there is no clear; did you mean "clean"?'),
        ("{clean: 0.5}}", "{clean: 0.5}, measures: [loss]}", 12, "nothing is judged by loss, which has no margin"),
        ("unit: nats", "among: clean", 10, "is for shares of right answers"),
    ],
)
def test_every_fault_names_its_line(tmp_path: Path, was: str, now: str, line: int, said: str) -> None:
    assert was in STUDY
    without = " margin: 0.1," if "no margin" in said else "no such text"
    with pytest.raises(RecipeError, match=r"mine\.yaml: ") as caught:
        loaded(tmp_path, STUDY.replace(was, now).replace(without, ""))
    text = str(caught.value)
    assert said in text
    assert f"line {line} " in text, text


def test_all_faults_come_at_once(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="3 faults, nothing was started"):
        loaded(
            tmp_path, STUDY.replace("margin: 1}", "margin: 0}").replace("seeds: [0, 1, 2]", "seeds: [x]") + "more: 1\n"
        )


def test_comments_and_order_of_keys_change_no_digest(tmp_path: Path) -> None:
    before = loaded(tmp_path).digest
    assert (
        loaded(tmp_path, "# a comment\n" + STUDY.replace("{run: eval, margin: 1}", "{margin: 1, run: eval}")).digest
        == before
    )
    assert loaded(tmp_path, STUDY.replace("margin: 1}", "margin: 2}")).digest != before


def test_a_file_that_is_no_mapping_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RecipeError, match="expected a mapping of keys"):
        loaded(tmp_path, "- a\n")


def test_an_unknown_study_names_the_nearest() -> None:
    with pytest.raises(RecipeError, match='pursiut: there is no such study; did you mean "pursuit"'):
        find_study("pursiut")


@pytest.mark.parametrize("name", shipped_studies())
def test_every_shipped_study_can_be_read(name: str) -> None:
    study = load_study(find_study(name))
    assert any(one.primary for one in study.comparisons)
    assert all(study.measured(one) for one in study.comparisons)


@pytest.mark.parametrize(
    ("cell", "number"), [("4/255", 4 / 255), ("0.5", 0.5), (3, 3.0), ("last", None), ("1/0", None)]
)
def test_fractions_are_numbers(cell: str | int, number: float | None) -> None:
    assert number_of(cell) == number
