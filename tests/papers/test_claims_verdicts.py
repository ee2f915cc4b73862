"""What the labels of a claim say together."""

from __future__ import annotations

import math

import pandas as pd
import pytest

from kattn_cli.papers.verdict import corrected, verdicts, words

HOLDS, NOT, UNTOLD, NOTHING = "holds", "does not hold", "cannot be told at this size", "not measured"


def found(*labels: tuple[str, float, float]) -> pd.DataFrame:
    """Verdict, mean and the paper's number of each label of one claim."""
    claim = {"paper": "P", "where": "§1", "claim": "It does.", "criterion": "c", "command": "kattn x"}
    return pd.DataFrame(
        {**claim, "label": f"x/{index}", "mean": mean, "low": mean - 1, "high": mean + 1, "seeds": 3,
         "p_value": math.nan, "verdict": verdict, "paper_number": number, "beside": ""}
        for index, (verdict, mean, number) in enumerate(labels)
    )  # fmt: skip


@pytest.mark.parametrize(
    ("labels", "verdict", "said"),
    [
        ((HOLDS, HOLDS, UNTOLD), HOLDS, HOLDS),
        ((NOT, UNTOLD), NOT, NOT),
        ((HOLDS, NOT, HOLDS, UNTOLD, UNTOLD), "mixed", "mixed (holds for 2 of 5)"),
        ((UNTOLD, UNTOLD), UNTOLD, UNTOLD),
        ((NOTHING,), NOTHING, NOTHING),
    ],
)
def test_all_told_labels_must_agree(labels: tuple[str, ...], verdict: str, said: str) -> None:
    row = verdicts(found(*((one, 1.0, math.nan) for one in labels))).iloc[0]
    measured = [one for one in labels if one != NOTHING]
    assert (row["verdict"], words(row), row["labels"]) == (verdict, said, len(measured))
    counts = [measured.count(one) for one in (HOLDS, NOT, UNTOLD)]
    assert [row["holds"], row["does_not_hold"], row["cannot_be_told"]] == counts


def test_numbers_are_in_words() -> None:
    one = verdicts(found((HOLDS, 0.5, 0.87))).iloc[0]
    assert (one["ours"], one["theirs"], one["command"]) == ("x/0 0.5 [-0.5, 1.5]", "0.87", "kattn x")
    several = verdicts(found((HOLDS, 0.5, 0.87), (UNTOLD, 1e-15, 0.5), (UNTOLD, math.nan, math.nan))).iloc[0]
    assert (several["ours"], several["theirs"]) == ("x/0 0.5, x/1 0", "x/0 0.87, x/1 0.5")
    alike = verdicts(found((HOLDS, 0.5, 0.87), (UNTOLD, 1, 0.87))).iloc[0]
    assert alike["theirs"] == "0.87"


def test_holm_is_within_a_claim_and_leaves_costs_alone() -> None:
    """p = 0.01 and 0.03 of one claim: 0.02 and 0.03; of three labels 0.01, 0.03, 0.04: 0.03, 0.06, 0.06."""
    two = found((HOLDS, 1, 1), (NOT, 1, 1)).assign(p_value=[0.01, 0.03])
    three = found((HOLDS, 1, 1), (NOT, 1, 1), (HOLDS, 1, 1)).assign(claim="More.", p_value=[0.01, 0.03, 0.04])
    cost = found((HOLDS, 1, 1), (UNTOLD, 1, 1)).assign(claim="Cheap.", p_value=[math.nan, math.nan])
    after = corrected(pd.concat([two, three, cost], ignore_index=True))
    assert after["p_holm"].tolist() == pytest.approx([0.02, 0.03, 0.03, 0.06, 0.06, math.nan, math.nan], nan_ok=True)
    assert after["verdict"].tolist() == [HOLDS, NOT, HOLDS, UNTOLD, UNTOLD, HOLDS, UNTOLD]
