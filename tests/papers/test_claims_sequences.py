"""Claims on series, long sequences and language, each judged both ways on numbers that are chosen."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from papers.claim_tables import SEEDS, judge
from sequence_runs import ATTENTIONS, LISTOPS, write_classified, write_language, write_run

from kattn_cli.runs.csv_rows import write_rows
from kattn_cli.runs.run import Run

VOWELS = {"name": "uea", "set": "JapaneseVowels"}
IMAGE = {"name": "pixels", "size": 32}
LISTS = {**LISTOPS, "max_length": 2000}
DATA: dict[str, dict[str, Any]] = {"vowels": VOWELS, "listops": LISTS, "image": IMAGE}
"""As long as the papers' own."""
NOISE = (0.0, 0.02, 0.04)
"""By seed, of what is not the baseline, so that there is a spread; its mean is 0.02."""


@pytest.fixture(autouse=True)
def more_attentions(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("flowformer", "reformer", "performer", "linformer", "bigbird"):
        monkeypatch.setitem(ATTENTIONS, name, {"name": name, "layers": {}})


def classified(
    folder: Path, levels: Mapping[str, float], data: Mapping[str, Mapping[str, Any]] = DATA, level: float = 50
) -> list[Run]:
    """Runs of ``<task>/<model>``, each so many points above what the seed gives all of them."""
    return [
        write_classified(
            folder, f"small/{name}", seed, data[name.partition("/")[0]], level + 5 * seed + gain + noise(gain, seed)
        )
        for name, gain in levels.items()
        for seed in SEEDS
    ]


def noise(level: float, seed: int) -> float:
    return NOISE[seed] if level else 0.0


@pytest.mark.parametrize(
    ("claim", "task", "ours", "base", "within", "printed"),
    [
        ("Primal.+ is more accurate than the Transformer on UEA", "vowels", "primal_plus", "softmax", 0, 0.2),
        ("Primal. is comparable to or better than Flowformer", "vowels", "primal", "flowformer", 1, -0.5),
        ("Primal.+ is comparable to or better than Flowformer", "vowels", "primal_plus", "flowformer", 1, 0.0),
        ("Primal.+ is more accurate than the Transformer on Long", "listops", "primal_plus", "softmax", 0, 0.2),
        ("ToST outperforms the Transformer on Long", "image", "tssa", "softmax", 0, 3.68),
    ],
)
def test_one_task(claim: str, task: str, ours: str, base: str, within: float, printed: float, tmp_path: Path) -> None:
    """Two points on either side of 0, or of the bound."""
    words = ("holds", "does not hold") if within else ("better", "worse")
    for gain, verdict in zip((2 - within, -2 - within), words, strict=True):
        runs = classified(tmp_path / verdict, {f"{task}/{base}": 0, f"{task}/{ours}": gain})
        found = judge(runs, claim)
        assert found["label"].tolist() == [ours]
        assert found["mean"].tolist() == pytest.approx([gain + 0.02])
        assert found["verdict"].tolist() == [verdict]
        assert found["paper_number"].tolist() == pytest.approx([printed])


def test_what_is_shorter_than_the_papers_is_not_tested_whatever_it_shows(tmp_path: Path) -> None:
    """Lists of up to 128, and images of 16 × 16, at 55 %: 20 points of difference say nothing of Long-Range Arena."""
    short = {"listops/softmax": 0, "image/softmax": 0, "listops/tssa": -20, "image/tssa": -20}
    shorter = {**DATA, "listops": {**LISTOPS, "max_length": 128}, "image": {"name": "pixels", "size": 16}}
    found = judge(classified(tmp_path / "short", short, shorter), "ToST outperforms the Transformer")
    assert found[["verdict", "class"]].to_numpy().tolist() == [["not tested at the paper's scale", "scale-bound"]]
    assert found["reason"][0] == "needs 1,000 tokens (here 128)"
    assert found["mean"][0] == pytest.approx(-19.98)
    assert found[["p_value", "p_holm"]].isna().all(axis=None)
    long = judge(classified(tmp_path / "long", short), "ToST outperforms the Transformer")
    assert long["verdict"].tolist() == ["worse"]
    blind = judge(classified(tmp_path / "blind", short, level=20), "ToST outperforms the Transformer")
    assert blind["reason"][0] == "needs 30 % top-1 (here 25)"


def test_the_average_is_over_tasks_that_both_have(tmp_path: Path) -> None:
    """ListOps +6, Image −2: +2 on average over both; against a base that has ListOps alone, of ListOps alone."""
    levels = {"listops/softmax": 0, "image/softmax": 0, "listops/tssa": 6, "image/tssa": -2, "listops/reformer": 0}
    runs = classified(tmp_path, levels)
    both = judge(runs, "ToST outperforms the Transformer")
    assert (both["label"].tolist(), both["verdict"].tolist()) == (["small/*/tssa"], ["better"])
    assert both["mean"].tolist() == pytest.approx([2.02])
    assert both["paper_number"].tolist() == pytest.approx([(0.14 + 3.68) / 2])
    assert both["beside"][0].startswith("ListOps 61.02 against 55 %, Image 53.02 against 55 %")
    one = judge(runs, "ToST outperforms Reformer, BigBird")
    assert (one["label"].tolist(), one["mean"].tolist()) == (
        ["small/listops/tssa against reformer"],
        [pytest.approx(6.02)],
    )


def test_each_of_several_bases_is_a_label(tmp_path: Path) -> None:
    levels = {"listops/primal": 0, "listops/reformer": -2, "listops/performer": 2, "listops/linformer": -4}
    found = judge(classified(tmp_path, levels), "Primal. is more accurate than Reformer")
    assert found["label"].tolist() == [f"primal against {base}" for base in ("reformer", "performer", "linformer")]
    assert found["verdict"].tolist() == ["better", "worse", "better"]
    assert found["paper_number"].tolist() == pytest.approx([18.2, 18.5, 0.0])


@pytest.mark.parametrize(
    ("model", "without", "change", "kind", "printed", "claim"),
    [
        ("primal", "primal", {"scores": "e"}, "listops", 0.5, "e-scores alone, on Long-Range Arena"),
        ("primal", "primal", {"eta": 0.0}, "vowels", 0.3, "η > 0 against η = 0"),
        ("primal_plus", "primal_plus", {"projection": "data-independent"}, "vowels", -0.3, "ones that do not, on UEA"),
    ],
)
def test_ablations_are_told_by_the_recipe(
    model: str,
    without: str,
    change: Mapping[str, Any],
    kind: str,
    printed: float,
    claim: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    options = {"name": "primal", "s": 40, "eta": 0.5}

    def recipe(changes: Mapping[str, Any]) -> dict[str, Any]:
        last = {**options, **changes}
        return {**last, "layers": {}} if model == "primal" else {"name": "softmax", "layers": {-1: last}}

    for gain, verdict in ((2.0, "better"), (-2.0, "worse")):
        runs = []
        for name, changes, level in ((model, {}, gain), ("bare", change, 0.0)):
            monkeypatch.setitem(ATTENTIONS, name, recipe(changes))
            runs += classified(tmp_path / verdict, {f"{kind}/{name}": level})
        found = judge(runs, claim)
        assert (found["label"].tolist(), found["verdict"].tolist()) == ([model], [verdict])
        assert found["paper_number"].tolist() == pytest.approx([printed])


def write(folder: Path, name: str, seed: int, data: Mapping[str, Any], seconds: float, mib: float) -> Run:
    run = write_run(folder, name, seed, data, peak_memory_mib=mib, best_epoch=1)
    rows = [
        {"epoch": 1, "step": 100, "split": split, "loss": 1.0, "top1": 1.0, "seconds": seconds + seed / 100}
        for split in ("train", "validation")
    ]
    write_rows(run.folder / "metrics.csv", rows)
    return run


UNTESTED = "not tested at the paper's scale"


@pytest.mark.parametrize(
    ("data", "on", "verdicts", "printed"),
    [
        (LISTS, "Long-Range Arena", ("true", "false"), (56.5 / 194.5, 0.69 / 5.50)),
        (LISTOPS, "Long-Range Arena", (UNTESTED, UNTESTED), (56.5 / 194.5, 0.69 / 5.50)),
        (VOWELS, "UEA time series", (UNTESTED, UNTESTED), (1.0, math.nan)),
        ({**VOWELS, "set": "Heartbeat"}, "UEA time series", ("true", "false"), (0.4 / 0.7, math.nan)),
    ],
)
def test_a_cost_is_a_fact_of_sequences_as_long_as_the_papers(
    data: Mapping[str, Any], on: str, verdicts: tuple[str, str], printed: tuple[float, float], tmp_path: Path
) -> None:
    """Half of softmax's time and memory, then 1.5 times."""
    for factor, verdict in zip((0.5, 1.5), verdicts, strict=True):
        runs = [
            write(tmp_path / str(factor), f"x/{name}", seed, data, 2 * share, 500 * share * (1 + wobble * (seed - 1)))
            for name, share, wobble in (("softmax", 1.0, 0), ("primal", factor, 0.001))
            for seed in SEEDS
        ]
        time = judge(runs, f"take less time than the Transformer on {on}")
        assert (time["label"].tolist(), time["verdict"].tolist()) == (["primal"], [verdict])
        assert time["mean"][0] == pytest.approx(factor, abs=0.01)
        memory = judge(runs, f"take less memory than the Transformer on {on}")
        assert memory["mean"].tolist() == pytest.approx([factor])
        assert [memory["low"][0], memory["high"][0]] == pytest.approx([0.999 * factor, 1.001 * factor])
        assert memory["verdict"].tolist() == [verdict]
        assert [time["paper_number"][0], memory["paper_number"][0]] == pytest.approx(printed, nan_ok=True)


@pytest.mark.parametrize(
    ("claim", "ours", "base", "gain", "loss", "printed"),
    [
        ("lower perplexity than symmetric attention on clean", "rpc", "symmetric", -1, 1, (35.26, 36.36)),
        ("symmetric attention where words are swapped", "rpc", "symmetric", -1, 1, (43.16, 44.32)),
        ("Primal.+ has a lower perplexity", "primal_plus", "softmax", -1, 1, (31.0, 33.0)),
    ],
)
def test_perplexities_are_compared_in_percent(
    claim: str, ours: str, base: str, gain: float, loss: float, printed: tuple[float, float], tmp_path: Path
) -> None:
    """From a perplexity of 10, 9 is 10.5 % less by the logarithm; swapped, 1.125 times as much and 0.5 more."""
    for change, verdict in ((gain, "better"), (loss, "worse")):
        found = judge(spoken(tmp_path / verdict, base, ours, change), claim)
        assert (found["label"].tolist(), found["verdict"].tolist()) == ([ours], [verdict])
        times, more = (1.125, 0.5) if "swapped" in claim else (1.0, 0.0)
        ours_and_base = [(times * level + more for level in (10 + change + one, 10)) for one in NOISE]
        difference = sum(100 * math.log(one / other) for one, other in ours_and_base) / 3
        assert found["mean"].tolist() == pytest.approx([difference])
        assert found["margin"].tolist() == [2]
        assert found["paper_number"].tolist() == pytest.approx([100 * math.log(printed[0] / printed[1])])


def test_a_loss_against_the_papers_own(tmp_path: Path) -> None:
    """Of ToST the loss may grow by 0.36 nats: log 1.3 = 0.26, log 1.6 = 0.47."""
    for change, verdict in ((3, "holds"), (6, "does not hold")):
        found = judge(spoken(tmp_path / verdict, "softmax", "tssa", change), "largely preserves a language model")
        assert (found["label"].tolist(), found["verdict"].tolist()) == (["tssa"], [verdict])
        assert found["mean"].tolist() == pytest.approx([sum(math.log((10 + change + one) / 10) for one in NOISE) / 3])
        assert found["paper_number"].tolist() == pytest.approx([0.36])


def spoken(folder: Path, base: str, ours: str, change: float) -> list[Run]:
    return [
        write_language(folder, f"x/{name}", seed, 10 + level + noise(level, seed))
        for name, level in ((base, 0.0), (ours, change))
        for seed in SEEDS
    ]


def test_sentences(tmp_path: Path) -> None:
    data = {"name": "sst2", "vocabulary": "words", "seq_len": 64}
    for gain, verdict in ((2.0, "better"), (-2.0, "worse")):
        runs = []
        for name, level in (("symmetric", 0.0), ("rpc", gain)):
            for seed in SEEDS:
                run = write_classified(tmp_path / verdict, f"x/{name}", seed, data, 50)
                row = {
                    "split": "validation",
                    "severity": 0,
                    "images": 9,
                    "top1": 50 + seed + level + noise(level, seed),
                }
                write_rows(run.folder / "eval.csv", [row])
                runs.append(run)
        found = judge(runs, "at fine-tuning alone, is more accurate than symmetric")
        assert (found["verdict"].tolist(), found["mean"].tolist()) == ([verdict], [pytest.approx(gain + 0.02)])
        assert found["paper_number"].tolist() == pytest.approx([76.27 - 69.20])


def test_other_folders_and_settings_are_no_baseline(tmp_path: Path) -> None:
    """A softmax of another folder, of other lists, or trained otherwise is none of theirs."""
    longer = {**LISTOPS, "max_length": 256}
    for seed in SEEDS:
        write_classified(tmp_path, "a/tssa", seed, LISTOPS, 60.0)
        write_classified(tmp_path, "b/softmax", seed, LISTOPS, 50.0)
        write_classified(tmp_path, "a/softmax", seed, longer, 50.0)
    runs = [Run(path.parent) for path in tmp_path.rglob("manifest.json")]
    assert judge(runs, "ToST outperforms the Transformer")["verdict"].tolist() == ["not measured"]


def test_runs_on_sequences_are_not_judged_as_images(tmp_path: Path) -> None:
    runs = classified(tmp_path, {"listops/softmax": 0, "listops/primal_plus": 1})
    assert judge(runs, "softmax backbone on images")["verdict"].tolist() == ["not measured"]
