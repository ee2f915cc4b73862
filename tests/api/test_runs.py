"""From a recipe to its numbers, in Python: what the commands write is what is returned."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import kattn_cli as kattn
from kattn_cli.api.runs import Run


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    for name in ("softmax", "symmetric"):
        kattn.train(
            f"quickstart/{name}", seed=[0, 1, 2], results=folder, device="cpu", train={"epochs": 3, "warmup_epochs": 1}
        )
    return folder


def test_a_run_has_its_recipe_metrics_and_model(results: Path) -> None:
    found = kattn.runs("quickstart/softmax", results=results)
    assert [run.seed for run in found] == [0, 1, 2]
    assert found[0].recipe["train"]["epochs"] == 3
    assert list(found[0].metrics["split"]) == ["train", "validation"] * 3
    model = found[0].model(device="cpu")
    assert not model.training
    assert model(torch.zeros(1, 1, 8, 8)).shape == (1, 10)


def test_resumed_what_is_finished_is_not_trained_again(results: Path) -> None:
    (before,) = kattn.runs("quickstart/softmax/0", results=results)
    start = before.manifest["start"]
    overrides = {"epochs": 3, "warmup_epochs": 1}
    (again,) = kattn.train("quickstart/softmax", seed=0, results=results, device="cpu", resume=True, train=overrides)
    assert (again.folder, again.manifest["start"]) == (before.folder, start)


def test_what_is_measured_is_returned_and_kept(results: Path) -> None:
    found = kattn.evaluate("quickstart", results=results, device="cpu", limit=50)
    assert len(found) == 6
    run = Run(Path(found["folder"][0]))
    assert run.table("eval.csv")["top1"][0] == found["top1"][0]
    assert run.manifest["command"].startswith("kattn.train('quickstart/softmax', seed=[0, 1, 2], results=")
    assert run.manifest["measurements"][-1]["command"].startswith("kattn.evaluate('quickstart', results=")


def test_attacks_are_named_with_their_budgets(results: Path) -> None:
    found = kattn.attack(
        "quickstart/softmax/0", results=results, device="cpu", limit=10, steps=2, pgd=["4/255", 0.1], fgsm=[]
    )
    assert list(found["attack"]) == ["pgd"] * 2 + ["fgsm"] * 6, "nothing stands for the attack's own budgets"
    assert list(found["epsilon"][:2]) == pytest.approx([4 / 255, 0.1], rel=1e-4)


def test_spectra_and_items_of_the_audit_come_as_tables(results: Path) -> None:
    (run,) = kattn.runs("quickstart/softmax/0", results=results)
    assert {"singular_value", "layer", "head"} <= {*kattn.spectrum(run, device="cpu", inputs=2)}
    assert len(run.table("effective_rank.csv"))
    tables = kattn.audit(run, only=["projection_error"], device="cpu", inputs=2)
    assert list(tables) == ["projection_error"]
    assert "j_proj" in tables["projection_error"]


def test_a_comparison_is_judged_over_the_seeds_and_images_of_both(results: Path) -> None:
    kattn.evaluate("quickstart", results=results, device="cpu", limit=50)
    (row,) = kattn.compare("quickstart", results=results, margin=100).to_dict("records")
    assert (row["seeds"], row["images"]) == (3, 50)
    assert row["low"] < row["difference"] < row["high"]
    values = kattn.evaluate("quickstart", results=results, device="cpu", limit=50).groupby("mechanism")["top1"].mean()
    assert row["difference"] == pytest.approx(values["symmetric"] - values["softmax"])


def test_costs_are_of_the_mechanisms_named_beside_softmax(tmp_path: Path) -> None:
    found = kattn.complexity("tssa", n=[8, 4], dim=8, heads=2, seconds=0.001, results=tmp_path, device="cpu")
    assert set(found["attention"]) == {"softmax", "tssa"}
    assert sorted(found[found["attention"] == "tssa"]["n"]) == [4, 8]
    with pytest.raises(kattn.KattnError, match="heads=3 does not divide dim=8"):
        kattn.complexity("tssa", dim=8, heads=3)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda at: kattn.runs("quickstart/softmx", results=at), "did you mean"),
        (lambda at: kattn.evaluate("quickstart", results=at, corruption_=True), "evaluate: there is no corruption_"),
        (lambda at: kattn.attack("quickstart", results=at, pdg=["4/255"]), 'did you mean "pgd"?'),
        (lambda at: kattn.attack("quickstart", results=at), "attack: names no attack"),
        (lambda at: kattn.audit("quickstart", results=at, only=["projection"]), 'did you mean "projection_error"?'),
        (
            lambda at: kattn.compare("quickstart", results=at, baseline="sofmax"),
            "baseline sofmax: no recipe is called so",
        ),
        (lambda at: kattn.train("quickstart/rpc", results=at, train={"epoch": 3}), 'did you mean "epochs"'),
    ],
)
def test_what_is_wrong_is_said_before_anything_is_done(results: Path, call: object, said: str) -> None:
    assert callable(call)
    with pytest.raises(kattn.KattnError) as caught:
        call(results)
    assert said in str(caught.value)
