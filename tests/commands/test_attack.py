"""``kattn attack`` as a user gives it: rows, resuming, conventions, targets, comparison, checks."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from command_line import Said, kattn
from torch import Tensor

from kattn_cli.attacks import ATTACKS, AttackSettings
from kattn_cli.commands.attack.plan import Planned, duration, estimate
from kattn_cli.runs.bits import unpacked

LITTLE = ("--limit", "40", "--batch-size", "16", "--device", "cpu")


@pytest.fixture
def results(trained: Path, tmp_path: Path) -> Path:
    """Two seeds of one trained run, to write into."""
    folder = Path(shutil.copytree(trained, tmp_path / "results"))
    shutil.copytree(folder / "tiny" / "0", folder / "tiny" / "1")
    manifest = folder / "tiny" / "1" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"seed": 0', '"seed": 1'))
    return folder


def attack(capfd: pytest.CaptureFixture[str], results: Path, *arguments: str) -> Said:
    """``kattn attack`` on a few images."""
    return kattn(capfd, "attack", *arguments, *LITTLE, "--results", results)


def rows(results: Path, run: str = "tiny/0") -> pd.DataFrame:
    return pd.read_csv(results / run / "attacks.csv")


def without_time(table: pd.DataFrame) -> list[dict[str, Any]]:
    return table.drop(columns="seconds").astype(str).to_dict("records")


def test_a_row_says_what_was_measured(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, _, _ = attack(capfd, results, "tiny/0", "--pgd", "--epsilon", "8/255", "--restarts", "2", "--no-checks")
    assert code == 0
    (row,) = rows(results).to_dict("records")
    for column, value in {
        "attack": "pgd", "norm": "linf", "epsilon_units": "pixels in [0, 1]", "steps": 20, "restarts": 2,
        "targeted": False, "seed": 0, "images": 40, "batch_size": 16, "checkpoint": "best",
    }.items():  # fmt: skip
        assert row[column] == value, column
    assert row["epsilon"] == pytest.approx(8 / 255)
    assert row["step_size"] == pytest.approx(0.15 * 8 / 255)
    images = pd.read_csv(results / "tiny" / "0" / row["per_image"])
    assert images["image"].tolist() == list(range(40))
    assert row["top1"] == pytest.approx(100 * images["top1"].mean())
    assert unpacked(row["correct"], 40).tolist() == images["top1"].astype(bool).tolist()
    assert rows(results).columns[-1] == "correct"
    assert row["clean_top1"] == pytest.approx(100 * images["clean"].mean())
    assert 0 < row["mean_linf"] <= 8 / 255 + 1e-6
    assert row["mean_linf"] < row["mean_l2"] < row["mean_l1"]
    assert not (results / "tiny" / "0" / "attack_checks.csv").exists()


def test_interrupted_it_goes_on_after_the_last_finished_batch(
    results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = ("tiny", "--pgd", "--noise", "--epsilon", "8/255", "--epsilon", "16/255", "--no-checks")
    attack(capfd, results, *asked)
    whole = {run: without_time(rows(results, run)) for run in ("tiny/0", "tiny/1")}
    for run in whole:
        shutil.rmtree(results / run / "attacked")
        (results / run / "attacks.csv").unlink()

    calls = {"pgd": 0, "stop after": 5}
    pgd = ATTACKS["pgd"].perturb

    def counted(*arguments: Any) -> Tensor:
        calls["pgd"] += 1
        if calls["pgd"] > calls["stop after"]:
            raise KeyboardInterrupt
        return pgd(*arguments)

    monkeypatch.setattr("kattn_cli.attacks.pgd.perturb", counted)
    code, _, err = attack(capfd, results, *asked)
    assert code == 130
    assert err.strip() == "Stopped; what was measured so far is kept; the same command goes on from there"
    assert len(rows(results)) == 1
    assert len(json.loads((results / "tiny" / "0" / "manifest.json").read_text())["measurements"]) == 2
    calls.update({"pgd": 0, "stop after": 100})
    code, out, _ = attack(capfd, results, *asked)
    assert code == 0
    assert calls["pgd"] == 12 - 5, "batches of two runs at two ε, three each, less those that were done"
    assert "tiny/0: 1 of 4 measurements are there already (--again measures anew)" in out
    for run, before in whole.items():
        assert without_time(rows(results, run)) == before


def test_again_measures_anew(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    asked = ("tiny/0", "--noise", "--epsilon", "8/255")
    attack(capfd, results, *asked)
    images = results / "tiny" / "0" / rows(results)["per_image"].item()
    truth = images.read_text()
    images.write_text(truth.replace(",1,1,1,0,", ",0,0,1,0,"))
    attack(capfd, results, *asked)
    assert rows(results)["top1"].item() == 0
    attack(capfd, results, *asked, "--again")
    assert rows(results)["top1"].item() > 0


def test_reference_convention(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Its ε = 1 is the deviation of the training images, some 0.38 in pixels, so it is much the weaker budget."""
    for convention in ("paper", "reference"):
        code, _, _ = attack(capfd, results, "tiny/0", "--fgsm", "--epsilon", "32/255", "--convention", convention)
        assert code == 0
    table = rows(results).set_index("epsilon_units")
    assert table.index.tolist() == ["pixels in [0, 1]", "normalised"]
    assert table.loc["normalised", "mean_linf"] == pytest.approx(32 / 255, rel=1e-4)
    assert table.loc["normalised", "top1"] > table.loc["pixels in [0, 1]", "top1"]


def test_targeted(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for epsilon in ("1/255", "0.5"):
        attack(capfd, results, "tiny/0", "--pgd", "--targeted", "--epsilon", epsilon)
    weak, strong = rows(results)["target_rate"]
    assert weak < 20
    assert strong > 90
    assert rows(results)["targeted"].all()


def test_several_runs_are_compared_image_by_image(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    other = results / "other" / "0"
    shutil.copytree(results / "tiny" / "0", other)
    manifest = other / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"name": "tiny"', '"name": "other"'))
    code, out, _ = attack(capfd, results, "tiny", "other", "--fgsm", "--epsilon", "8/255")
    assert code == 0
    assert "difference (paired, 95 %)" in out
    table = pd.read_csv(results / "figures" / "attack_differences.csv")
    assert table["name"].tolist() == ["clean", "fgsm 8/255"]
    assert table["label"].unique().tolist() == ["other"]
    assert table[["difference", "p_value", "seeds", "images"]].to_numpy().tolist() == [[0, 1, 1, 40]] * 2
    assert (results / "figures" / "robustness.png").exists()


def test_checks_tell_what_they_rest_on(results: Path, capfd: pytest.CaptureFixture[str]) -> None:
    code, out, _ = attack(capfd, results, "tiny/0", "--pgd", "--fgsm", "--noise", "--epsilon", "4/255, 32/255")
    assert code == 0
    table = pd.read_csv(results / "tiny" / "0" / "attack_checks.csv").set_index("check")
    assert table.index.tolist() == [
        "accuracy falls with ε",
        "PGD ≤ FGSM",
        "white-box ≤ black-box",
        "unbounded PGD reaches 0",
        "restarts converge",
    ]
    assert (table["verdict"] == "holds").all()
    assert table.loc["unbounded PGD reaches 0", "evidence"] == "pgd ε = 1, 50 steps: 0.0 % on 40 images"
    assert out.count("✓") == 5
    assert f"✓ restarts converge          {table.loc['restarts converge', 'evidence']}" in out


def test_a_model_whose_gradient_is_masked_is_found_out(
    results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pixels are rounded to few levels, whose gradient is nothing: PGD fails, and the checks say so."""
    from kattn_cli.models import Classifier

    forward = Classifier.forward
    monkeypatch.setattr(
        Classifier, "forward", lambda self, images: forward(self, images.detach().round()) + 0 * images.sum()
    )
    code, out, _ = attack(capfd, results, "tiny/0", "--pgd", "--fgsm", "--noise", "--epsilon", "0.6")
    assert code == 0
    verdict = pd.read_csv(results / "tiny" / "0" / "attack_checks.csv").set_index("check")["verdict"]
    assert verdict["unbounded PGD reaches 0"] == "does not hold"
    assert "✗ unbounded PGD reaches 0" in out


def test_a_model_that_draws_is_refused(
    results: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kattn_cli.models import Classifier

    forward = Classifier.forward
    monkeypatch.setattr(Classifier, "forward", lambda self, images: forward(self, images + torch.rand_like(images)))
    code, _, err = attack(capfd, results, "tiny/0", "--pgd")
    assert code == 2
    assert err.strip() == f"{results}/tiny/0: its model answers differently when asked twice; attacks need one"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--all", "--pgd"], "--all and --pgd: --all means every attack; leave one of them out"),
        (["--sld", "--norm", "linf"], "--norm linf: does not apply to sld; it does to pgd, fgsm"),
        (["--pgd", "--epsilon-l2", "-1"], "-1 is not above 0"),
        (["--pgd", "--epsilon-l2", "a"], '"a" is not a number, a fraction or inf'),
    ],
)
def test_faults(results: Path, capfd: pytest.CaptureFixture[str], arguments: list[str], told: str) -> None:
    code, _, err = attack(capfd, results, "tiny/0", *arguments)
    assert code == 2
    assert told in err


def test_estimates_count_passes() -> None:
    """PGD's 20 forward and backward passes of 1 ms and 2 ms on 100 images, twice for two restarts; noise takes none."""
    pgd = Planned("pgd", AttackSettings("linf", 0.1, 20, 0.15), restarts=2)
    blind = Planned("noise", AttackSettings("linf", 0.1, 0, 0.0))
    found = estimate([pgd, pgd, blind], images=100, passes=(1e-3, 2e-3))
    assert found == pytest.approx({"pgd": 2 * 2 * 20 * 100 * 3e-3, "noise": 0})
    assert [duration(s) for s in (42.4, 600, 9000)] == ["42 s", "10 min", "2.5 h"]
