"""Claims about cost, each judged both ways on one measurement."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest
from papers.claim_tables import judge

from kattn_cli.papers.cost_claims import share_of
from kattn_cli.papers.evidence import Evidence

SETTING = {"device": "cpu", "dtype": "float32", "dim": 8, "heads": 2, "batch": 1, "status": "ok"}


def layers(*rows: tuple[str, str, int, float, float, float]) -> pd.DataFrame:
    columns = ("attention", "version", "n", "milliseconds", "spread", "peak_mib")
    one_pass = {"pass": "forward", "causal": "no", "forward_flops": 1, **SETTING}
    return pd.DataFrame({**one_pass, **dict(zip(columns, row, strict=True))} for row in rows)


def test_a_layer_of_tssa_at_the_most_tokens() -> None:
    """At N = 64 it takes longer than softmax, at 128 half the time; of XCA's, ± 0.2, it cannot be told."""
    costs = layers(
        ("softmax", "fast", 64, 1.0, 0.0, 1.0), ("softmax", "fast", 128, 4.0, 0.0, 4.0),
        ("softmax", "slow", 128, 20.0, 0.0, 16.0), ("softmax", "fast", 256, 1.0, 0.0, 1.0),
        ("xca", "fast", 128, 2.1, 0.4, 2.0), ("mssa", "fast", 128, 1.0, 0.0, 1.0),
        ("tssa", "fast", 64, 1.5, 0.0, 1.0), ("tssa", "fast", 128, 2.0, 0.0, 2.0),
    )  # fmt: skip
    time = judge(Evidence([], costs), "A layer of TSSA takes less time").set_index("label")
    assert list(time.index) == [f"tssa against {one}" for one in ("softmax (slow)", "softmax", "mssa", "xca")]
    assert time["mean"].tolist() == pytest.approx([0.1, 0.5, 2.0, 2 / 2.1])
    assert time["verdict"].tolist() == ["holds", "holds", "does not hold", "cannot be told at this size"]
    assert time["high"].iloc[3] == pytest.approx(2 / 1.9)
    assert time["beside"].iloc[1] == "at N = 128, cpu; less from N = 128 on"
    assert time["beside"].iloc[2] == "at N = 128, cpu; at no N less"
    memory = judge(Evidence([], costs), "A layer of TSSA takes less memory")
    assert memory["mean"].tolist() == pytest.approx([0.125, 0.5, 2.0, 1.0])
    assert memory["verdict"].tolist() == ["holds", "holds", "does not hold", "does not hold"]


def test_tables_of_other_ages_are_read_together() -> None:
    """One without versions, one with: both count."""
    old = layers(("softmax", "fast", 64, 1.0, 0.0, 1.0), ("tssa", "fast", 64, 2.0, 0.0, 1.0)).drop(columns="version")
    new = layers(("softmax", "slow", 64, 4.0, 0.0, 1.0))
    evidence = Evidence.of([], [("complexity", old), ("complexity", new), ("benchmark", new)])
    time = judge(evidence, "A layer of TSSA takes less time")
    assert time["label"].tolist() == ["tssa against softmax (slow)", "tssa against softmax"]
    assert time["mean"].tolist() == [0.5, 2.0]


@pytest.mark.parametrize(
    ("ours", "verdict"), [(0.5, "holds"), (1.5, "does not hold"), (1.05, "cannot be told at this size")]
)
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
    assert memory["verdict"].tolist() == ["holds" if ours < 1 else "does not hold"]


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


@pytest.mark.parametrize(
    ("models_of", "what", "n", "claim", "below", "printed"),
    [
        (("symvit_tiny", "rpc_symvit_tiny"), TRAINING, 197, "only slightly more {} than sym", 1.2, (1.038, 1.004)),
        (("symvit_tiny", "rpc_all_symvit_tiny"), FORWARD, 197, "about as much {} as sym", 1.2, (1.7, 1.0)),
        (("deit_small", "primal_plus_deit_small"), TRAINING, 197, "less training {} than DeiT", 1.0, (0.961, 0.986)),
        (("decoder/softmax", "decoder/tssa"), FORWARD, 4096, "base size takes less {}", 1.0, (0.60, 0.41)),
    ],
)
def test_whole_models(
    models_of: tuple[str, str], what: str, n: int, claim: str, below: float, printed: tuple[float, float]
) -> None:
    names = [one if "/" in one else f"imagenet/{one}" for one in models_of]
    for offset, verdict in ((-0.1, "holds"), (0.1, "does not hold")):
        share = below + offset
        evidence = Evidence([], models=models(names[0], names[1], what, share, share, n))
        for quantity, number in zip(("time", "memory"), printed, strict=True):
            found = judge(evidence, claim.format(quantity))
            assert found["label"].tolist() == [f"{names[1]}, {n:,} tokens"]
            assert (found["mean"].tolist(), found["verdict"].tolist()) == ([pytest.approx(share)], [verdict])
            assert found["paper_number"].tolist() == pytest.approx([number], abs=1e-3)


def test_a_time_whose_spread_holds_the_bound_is_not_told() -> None:
    """1.195 ± 0.01 of 100 ± 1 ms: 1.173 to 1.217."""
    evidence = Evidence([], models=models("imagenet/symvit_tiny", "imagenet/rpc_symvit_tiny", TRAINING, 1.195, 1))
    found = judge(evidence, "only slightly more time")
    assert [found["low"][0], found["high"][0]] == pytest.approx([118.5 / 101, 120.5 / 99])
    assert found["verdict"].tolist() == ["cannot be told at this size"]


def test_a_model_measured_twice_counts_as_it_was_last() -> None:
    names = ("imagenet/symvit_tiny", "imagenet/rpc_symvit_tiny")
    twice = pd.concat([models(*names, TRAINING, 3.0, 3.0), models(*names, TRAINING, 1.1, 1.1)], ignore_index=True)
    found = share_of(names[0], names[1:], TRAINING, "memory", 1.2, Evidence([], models=twice))
    assert [one.mean for one in found] == pytest.approx([1.1])
