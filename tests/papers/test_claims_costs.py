"""Claims about cost, each judged both ways on one measurement."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest
from papers.claim_tables import judge

from kattn_cli.papers.claim import Fact
from kattn_cli.papers.cost_claims import share_of
from kattn_cli.papers.evidence import Evidence

SETTING = {"device": "cpu", "dtype": "float32", "dim": 8, "heads": 2, "batch": 1, "status": "ok"}


def layers(*rows: tuple[str, str, int, float, float, float]) -> pd.DataFrame:
    columns = ("attention", "version", "n", "milliseconds", "spread", "peak_mib")
    one_pass = {"pass": "forward", "causal": "no", "forward_flops": 1, **SETTING}
    return pd.DataFrame({**one_pass, **dict(zip(columns, row, strict=True))} for row in rows)


def test_a_layer_of_tssa_at_the_most_tokens() -> None:
    """At N = 64 it takes longer than softmax, at 8,192 half the time; of XCA's, ± 0.2, it is within the spread."""
    costs = layers(
        ("softmax", "fast", 64, 1.0, 0.0, 1.0), ("softmax", "fast", 8192, 4.0, 0.0, 4.0),
        ("softmax", "slow", 8192, 20.0, 0.0, 16.0), ("softmax", "fast", 16384, 1.0, 0.0, 1.0),
        ("xca", "fast", 8192, 2.1, 0.4, 2.0), ("mssa", "fast", 8192, 1.0, 0.0, 1.0),
        ("tssa", "fast", 64, 1.5, 0.0, 1.0), ("tssa", "fast", 8192, 2.0, 0.0, 2.0),
    )  # fmt: skip
    time = judge(Evidence([], costs), "A layer of TSSA takes less time").set_index("label")
    assert list(time.index) == [f"tssa against {one}" for one in ("softmax (slow)", "softmax", "mssa", "xca")]
    assert time["mean"].tolist() == pytest.approx([0.1, 0.5, 2.0, 2 / 2.1])
    assert time["verdict"].tolist() == ["true", "true", "false", "within its spread"]
    assert time["high"].iloc[3] == pytest.approx(2 / 1.9)
    assert time["beside"].iloc[1] == "at N = 8,192, cpu; less from N = 8,192 on"
    assert time["beside"].iloc[2] == "at N = 8,192, cpu; at no N less"
    memory = judge(Evidence([], costs), "A layer of TSSA takes less memory")
    assert memory["mean"].tolist() == pytest.approx([0.125, 0.5, 2.0, 1.0])
    assert memory["verdict"].tolist() == ["true", "true", "false", "false"]


def test_tables_of_other_ages_are_read_together() -> None:
    """One without versions, one with: both count."""
    old = layers(("softmax", "fast", 64, 1.0, 0.0, 1.0), ("tssa", "fast", 64, 2.0, 0.0, 1.0)).drop(columns="version")
    new = layers(("softmax", "slow", 64, 4.0, 0.0, 1.0))
    evidence = Evidence.of([], [("complexity", old), ("complexity", new), ("benchmark", new)])
    time = judge(evidence, "A layer of TSSA takes less time")
    assert time["label"].tolist() == ["tssa against softmax (slow)", "tssa against softmax"]
    assert time["mean"].tolist() == [0.5, 2.0]


@pytest.mark.parametrize(("ours", "verdict"), [(0.5, "true"), (1.5, "false"), (1.05, "within its spread")])
def test_one_more_token(ours: float, verdict: str) -> None:
    """Intervals of ± 0.1 around each."""
    costs = pd.DataFrame(
        {**SETTING, "attention": name, "context": 4096, "milliseconds": value, "milliseconds_low": value - 0.1,
         "milliseconds_high": value + 0.1, "ratio": 1.0, "state_mib": 3 * value, "peak_mib": value}
        for name, value in (("softmax", 1.0), ("tssa", ours))
    )  # fmt: skip
    time = judge(Evidence([], decoding=costs), "Causal TSSA takes less time")
    assert (time["label"].tolist(), time["verdict"].tolist()) == (["tssa, context 4,096"], [verdict])
    assert [time["low"][0], time["high"][0]] == pytest.approx([(ours - 0.1) / 1.1, (ours + 0.1) / 0.9])
    memory = judge(Evidence([], decoding=costs), "Causal TSSA takes less memory")
    assert memory["mean"].tolist() == pytest.approx([ours])
    assert memory["verdict"].tolist() == ["true" if ours < 1 else "false"]


def models(base: str, ours: str, what: str, time: float, memory: float, n: int = 197) -> pd.DataFrame:
    """The base takes 100 ms and holds 60 MiB, with 40 at most in a call."""

    def row(model: str, share_of_time: float, share_of_memory: float) -> dict[str, Any]:
        return {
            **SETTING, "model": model, "attention": "x", "version": "fast", "pass": what, "n": n,
            "milliseconds": 100 * share_of_time, "spread": 2.0, "milliseconds_per_sample": 100 * share_of_time,
            "peak_mib": 100 * share_of_memory - 60, "held_mib": 60.0,
        }  # fmt: skip

    return pd.DataFrame([row(ours, time, memory), row(base, 1, 1)])


TRAINING, FORWARD = "training step", "forward"


NO_BOUND, UNTESTED = "no bound stated", "not tested at the paper's scale"


@pytest.mark.parametrize(
    ("models_of", "what", "n", "batch", "claim", "verdicts", "printed"),
    [
        (
            ("symvit_tiny", "rpc_symvit_tiny"),
            TRAINING,
            197,
            1,
            "only slightly more {} than sym",
            (NO_BOUND, NO_BOUND),
            (1.038, 1.004),
        ),
        (
            ("symvit_tiny", "rpc_all_symvit_tiny"),
            FORWARD,
            197,
            1,
            "about as much {} as sym",
            (NO_BOUND, NO_BOUND),
            (1.7, 1.0),
        ),
        (
            ("deit_small", "primal_plus_deit_small"),
            TRAINING,
            197,
            1,
            "less training {} than DeiT",
            (UNTESTED, UNTESTED),
            (0.961, 0.986),
        ),
        (
            ("deit_small", "primal_plus_deit_small"),
            TRAINING,
            197,
            256,
            "less training {} than DeiT",
            ("true", "false"),
            (0.961, 0.986),
        ),
        (
            ("decoder/softmax", "decoder/tssa"),
            FORWARD,
            4096,
            1,
            "base size takes less {}",
            ("true", "false"),
            (0.60, 0.41),
        ),
    ],
)
def test_whole_models(
    models_of: tuple[str, str],
    what: str,
    n: int,
    batch: int,
    claim: str,
    verdicts: tuple[str, str],
    printed: tuple[float, float],
) -> None:
    """Of 0.9 and 1.1 times the cost; at batch 1 weights hide what a paper says of batches of 256."""
    names = [one if "/" in one else f"imagenet/{one}" for one in models_of]
    for share, verdict in zip((0.9, 1.1), verdicts, strict=True):
        evidence = Evidence([], models=models(names[0], names[1], what, share, share, n).assign(batch=batch))
        for quantity, number in zip(("time", "memory"), printed, strict=True):
            found = judge(evidence, claim.format(quantity))
            assert found["label"].tolist() == [f"{names[1]}, {n:,} tokens"]
            assert (found["mean"].tolist(), found["verdict"].tolist()) == ([pytest.approx(share)], [verdict])
            assert found["paper_number"].tolist() == pytest.approx([number], abs=1e-3)


def test_a_time_whose_spread_holds_the_bound_is_within_it() -> None:
    """0.995 ± 0.01 of 100 ± 1 ms: 0.975 to 1.015."""
    evidence = Evidence([], models=models("decoder/softmax", "decoder/tssa", FORWARD, 0.995, 1))
    found = judge(evidence, "base size takes less time")
    assert [found["low"][0], found["high"][0]] == pytest.approx([98.5 / 101, 100.5 / 99])
    assert found["verdict"].tolist() == ["within its spread"]


def grown(sizes: Sequence[int]) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "attention": name, "pass": "forward+backward", "device": "cpu", "n": n, "milliseconds": n**power,
            "peak_mib": n, "forward_flops": n, "status": "ok",
        }
        for name, power in (("softmax", 2), ("primal", 1))
        for n in sizes
    )  # fmt: skip


def test_an_exponent_is_fitted_where_the_longest_sequences_are() -> None:
    """Sizes up to 2,048 say nothing; up to 8,192 they do; a benchmark up to 32,768 goes before both."""
    claim = "Primal-Attention is linear"
    short = judge(Evidence([], grown((256, 512, 1024, 2048))), claim)
    assert short[["verdict", "reason"]].iloc[0].tolist() == [UNTESTED, "needs 8,192 tokens (here 2,048)"]
    long = judge(Evidence([], grown((1024, 2048, 4096, 8192))), claim)
    assert (long["verdict"].tolist(), long["mean"].tolist()) == (["true"], [pytest.approx(1)])
    assert "softmax 2.00; N from 4,096 to 8,192" in long["beside"][0]
    row = {
        "item": "time_exponents",
        "quantity": "time",
        "ours": "primal",
        "against": "N",
        "bound": 1.1,
        "device": "cpu",
    }
    ratios = pd.DataFrame([{**row, "value": 1.04, "low": 0.9, "high": 1.19}])
    both = judge(Evidence.of([], [("complexity", grown((4096, 8192))), ("benchmark", ratios)]), claim)
    assert both[["mean", "low", "high", "verdict"]].iloc[0].tolist() == [1.04, 0.9, 1.19, "true"]
    assert "N from 2,048 to 32,768" in both["beside"][0]


def test_a_model_measured_twice_counts_as_it_was_last() -> None:
    names = ("imagenet/symvit_tiny", "imagenet/rpc_symvit_tiny")
    twice = pd.concat([models(*names, TRAINING, 3.0, 3.0), models(*names, TRAINING, 1.1, 1.1)], ignore_index=True)
    found = share_of(names[0], names[1:], TRAINING, "memory", 1.2, Evidence([], models=twice))
    assert [one.value for one in found if isinstance(one, Fact)] == pytest.approx([1.1])
