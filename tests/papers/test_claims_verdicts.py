"""What the labels of a claim say together, and the claims of a page."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from papers.nimble import PAPER

from kattn_cli.papers.claim import Claim, Estimated, Finding, against_bound
from kattn_cli.papers.evidence import Evidence
from kattn_cli.papers.verdict import judged, tally, verdicts, words
from kattn_cli.statistics.effect import StudentEffect
from kattn_cli.tables.margins import CLEAN

BETTER, WORSE, UNTOLD, NOTHING = "better", "worse", "undecided", "not measured"


def found(*labels: tuple[str, float, float]) -> pd.DataFrame:
    """Verdict, mean and the paper's number of each label of one claim."""
    claim = {"paper": "P", "where": "§1", "claim": "It does.", "criterion": "c", "class": "statistical"}
    return pd.DataFrame(
        {**claim, "label": f"x/{index}", "mean": mean, "low": mean - 1, "high": mean + 1, "seeds": 3,
         "verdict": verdict, "paper_number": number, "reason": "", "beside": "", "command": "kattn x"}
        for index, (verdict, mean, number) in enumerate(labels)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "verdict", "said"),
    [
        ((BETTER, BETTER), BETTER, BETTER),
        ((BETTER, BETTER, UNTOLD), "in part", "in part: better 2, undecided 1"),
        ((WORSE, BETTER, BETTER, UNTOLD), "in part", "in part: better 2, worse 1, undecided 1"),
        ((UNTOLD, UNTOLD), UNTOLD, UNTOLD),
        ((NOTHING,), NOTHING, NOTHING),
    ],
)
def test_a_claim_has_a_verdict_where_all_labels_have_it(labels: tuple[str, ...], verdict: str, said: str) -> None:
    row = verdicts(found(*((one, 1.0, math.nan) for one in labels))).iloc[0]
    measured = [one for one in labels if one != NOTHING]
    assert (row["verdict"], words(row), row["labels"]) == (verdict, said, len(measured))


def test_numbers_are_in_words() -> None:
    one = verdicts(found((BETTER, 0.5, 0.87))).iloc[0]
    assert (one["ours"], one["theirs"], one["command"]) == ("x/0 0.5 [-0.5, 1.5]", "0.87", "kattn x")
    several = verdicts(found((BETTER, 0.5, 0.87), (UNTOLD, 1e-15, 0.5), (UNTOLD, math.nan, math.nan))).iloc[0]
    assert (several["ours"], several["theirs"]) == ("x/0 0.5, x/1 0", "x/0 0.87, x/1 0.5")
    alike = verdicts(found((BETTER, 0.5, 0.87), (UNTOLD, 1, 0.87))).iloc[0]
    assert alike["theirs"] == "0.87"


def test_a_tally_keeps_facts_apart() -> None:
    facts = found(("true", 1, 1), ("true", 1, 1)).assign(claim="Cheap.")
    part = found(("true", 1, 1), ("within its spread", 1, 1)).assign(claim="Fast.")
    told = found((BETTER, 1, 1))
    every = pd.concat([told, facts, part])
    assert tally(every) == "better 1. Facts: in part 1, true 1."
    assert tally(told) == "better 1."
    assert tally(facts) == "none judged. Facts: true 1."
    assert tally(every.iloc[:0]) == "none known."


def claim_of(text: str, *found: Finding, margin: bool = True) -> Claim:
    return Claim("§1", text, "c", "kattn x", lambda evidence: list(found), CLEAN if margin else None)


def difference(label: str, estimate: float, error: float, paper: float = math.nan, below: bool = False) -> Finding:
    """Of five seeds, by a standard error of eight degrees of freedom."""
    effect = StudentEffect(estimate, 5, standard_error=error, df=8)
    return Estimated(label, paper_number=paper, effect=effect, below=below)


def page(*claims: Claim) -> pd.DataFrame:
    return judged([(PAPER, one) for one in claims], Evidence([]))


@pytest.mark.parametrize(
    ("estimate", "error", "paper", "verdict"),
    [
        (2.0, 0.2, 1.0, "better"),
        (-2.0, 0.2, 1.0, "worse"),
        (0.1, 0.2, 1.0, "equivalent within the margin"),
        (-0.5, 0.5, 2.0, "the paper's effect is excluded here"),
        (0.5, 2.0, 1.0, "undecided"),
    ],
)
def test_the_five_verdicts_in_the_direction_of_the_claim(
    estimate: float, error: float, paper: float, verdict: str
) -> None:
    """t of 8 degrees of freedom: 1.86 for 5 % on one side, 2.31 on two; the margin is 1 point."""
    up = page(claim_of("It is more.", difference("x", estimate, error, paper)))
    down = page(claim_of("It is less.", difference("x", -estimate, error, -paper, below=True)))
    assert up["verdict"].tolist() == down["verdict"].tolist() == [verdict]
    assert up["criterion"].tolist() == ["c; margin 1 point of clean accuracy"]


def test_holm_is_within_a_claim() -> None:
    """t = 2.6 gives p = 0.032: told alone, not beside another label of the same claim."""
    (alone,) = page(claim_of("A.", difference("x", 2.6, 1.0)))["verdict"]
    beside = page(claim_of("A.", difference("x", 2.6, 1.0), difference("y", 0.5, 1.0)))
    assert alone == "better"
    assert beside["verdict"].tolist() == ["undecided", "undecided"]
    assert beside["p_value"][0] == pytest.approx(0.0316, abs=1e-4)
    assert beside["p_holm"][0] == pytest.approx(2 * 0.0316, abs=1e-4)


def test_claims_are_corrected_over_the_page() -> None:
    """p = 0.032 is told alone, and among nine claims that tell nothing it is not; comparisons and bounds together."""
    one = claim_of("A.", difference("x", 2.6, 1.0))
    others = [claim_of(f"B{number}.", difference("y", 0.1, 1.0)) for number in range(5)]
    bounds = [
        claim_of(f"C{number}.", against_bound("z", {0: 1.0, 1: -1.0, 2: 0.1}, above=0), margin=False)
        for number in range(4)
    ]
    many = page(one, *others, *bounds)
    assert many["verdict"].tolist() == ["undecided"] * 10
    assert "; better in its own family, and not among all families of the page" in many["reason"][0]
    strong = page(claim_of("A.", difference("x", 8.0, 1.0)), *others, *bounds)
    assert strong["verdict"][0] == "better"


def test_labels_of_a_bound_share_their_variance() -> None:
    """A sample whose three seeds hardly vary is not sure of itself beside two that do."""
    lucky, wide = {0: 0.09, 1: 0.1, 2: 0.11}, {0: -0.5, 1: 0.1, 2: 0.6}
    found = page(
        claim_of(
            "A.",
            *(against_bound(name, one, above=0) for name, one in zip("abc", (lucky, wide, wide), strict=True)),
            margin=False,
        )
    )
    assert found["verdict"].tolist() == ["undecided"] * 3
    assert page(claim_of("A.", against_bound("a", lucky, above=0), margin=False))["verdict"].tolist() == ["holds"]
