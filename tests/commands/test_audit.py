"""``kattn audit`` and ``kattn spectrum`` as a user types them, on runs that keep their epochs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from command_line import kattn

from kattn_cli.audit.items import ITEMS
from kattn_cli.commands.train.train import train
from kattn_cli.experiment.run import moments_of, open_run
from kattn_cli.runs.run import Run
from kattn_cli.training.opened import as_image_run

CPU = torch.device("cpu")
RECIPES = {
    "softmax": ("{name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2, pool: token}", "{name: softmax}"),
    "rpc": (
        "{name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}",
        "{name: symmetric, layers: {0: {name: rpc, iterations: 2}}}",
    ),
    "primal_plus": (
        "{name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}",
        "{name: softmax, layers: {1: {name: primal, s: 2}}}",
    ),
    "tost": ("{name: tost, patch_size: 4, dim: 16, depth: 2, heads: 2, class_depth: 1}", "{name: tssa}"),
    "linear": ("{name: vit, patch_size: 4, dim: 16, depth: 1, heads: 2}", "{name: performer}"),
}
OF_EVERY = {"outliers"}
KERNEL = {"projection_error", "eigenvectors", "alignment"}
EXPECTED = {
    "softmax": KERNEL | {"class_attention", "foreground", "images"},
    "rpc": KERNEL | {"pursuit", "planted"},
    "primal_plus": KERNEL | {"duality"},
    "tost": {"compression", "coherence", "subspaces", "membership", "class_attention", "foreground", "images"},
    "linear": set(),
}


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Runs of each kind, of 3 epochs of which 0, 2 and 3 are kept. Not to be changed but by the audit."""
    folder = tmp_path_factory.mktemp("audited")
    for name, (model, attention) in RECIPES.items():
        path = folder / f"{name}.yaml"
        path.write_text(
            f"name: x/{name}\ndata: {{name: digits}}\nmodel: {model}\nattention: {attention}\n"
            "train: {epochs: 3, batch_size: 256, lr: 5e-3, keep_every: 2}\n",
            encoding="utf-8",
        )
        train([str(path)], [], [], results=folder / "results", device=CPU)
    return folder / "results"


@pytest.fixture(scope="module")
def audited(results: Path) -> Path:
    from kattn_cli.commands.audit.measure import AuditSettings, audit_runs
    from kattn_cli.runs.find import find_runs

    audit_runs(find_runs(results, ["x"]), AuditSettings(inputs=6, seed=0, permutations=19, checkpoint="last"), CPU)
    return results


def table(results: Path, name: str, item: str) -> pd.DataFrame:
    return pd.read_csv(results / "x" / name / "0" / "audit" / f"{item}.csv")


@pytest.mark.parametrize("name", RECIPES)
def test_each_run_has_the_tables_of_its_mechanisms(name: str, audited: Path) -> None:
    written = {path.stem for path in (audited / "x" / name / "0" / "audit").glob("*.csv")}
    assert written == EXPECTED[name] | OF_EVERY
    assert Run(audited / "x" / name / "0").manifest["measurements"]


def test_all_items_are_tried() -> None:
    assert OF_EVERY.union(*EXPECTED.values()) == {name for name, item in ITEMS.items() if item.measure}


def test_moments_are_the_kept_epochs_and_the_chosen_one_once(audited: Path) -> None:
    run = Run(audited / "x" / "softmax" / "0")
    last = [(moment.epoch, moment.checkpoint) for moment in moments_of(run, CPU, "last")]
    assert last == [(0, "kept"), (2, "kept"), (3, "last")]
    best = [(moment.epoch, moment.checkpoint) for moment in moments_of(run, CPU, "best")]
    at = run.manifest["best_epoch"]
    assert ("best" in dict(best).values(), dict(best)[at]) == (True, "best")
    assert [epoch for epoch, _ in best] == sorted({0, 2, 3, at})


def test_epochs_of_each_item(audited: Path) -> None:
    assert table(audited, "softmax", "projection_error")["epoch"].unique().tolist() == [0, 2, 3]
    assert table(audited, "softmax", "alignment")["epoch"].unique().tolist() == [0, 3]
    assert table(audited, "primal_plus", "duality")["epoch"].unique().tolist() == [0, 2, 3]
    assert table(audited, "primal_plus", "projection_error")["layer"].unique().tolist() == [0]


def test_the_first_weights_are_those_before_training(audited: Path) -> None:
    """Epoch 0 of two recipes that begin alike but for the last layer: the first layer's numbers agree."""
    softmax = open_run(Run(audited / "x" / "softmax" / "0"), CPU, "epoch-0000")
    assert softmax.step == 0
    last = as_image_run(open_run(Run(audited / "x" / "softmax" / "0"), CPU, "last"), "a test")
    assert last.step == 15
    name = "backbone.blocks.0.attn.qkv.weight"
    assert not torch.equal(softmax.model.state_dict()[name], last.model.state_dict()[name])


def test_projection_error_is_that_of_the_model(audited: Path) -> None:
    """Both terms from the definition, with explicit sums, for the last weights."""
    opened = as_image_run(open_run(Run(audited / "x" / "softmax" / "0"), CPU, "last"), "a test")
    images, _ = next(opened.data.splits["validation"].first(6).batches(6))
    model = opened.model.double()
    x = model.attention_inputs(images.double())[1]
    mechanism = model.mechanisms()[1]
    q, k, v = (part.unflatten(-1, (2, 8)).transpose(1, 2) for part in mechanism.get_submodule("qkv")(x).chunk(3, -1))
    kappa = (q @ k.mT / 8**0.5).exp()
    feature = (q.square().sum(-1) / 8**0.5).exp() / kappa.sum(-1).square()
    h = (kappa / kappa.sum(-1, keepdim=True)) @ v
    rows = table(audited, "softmax", "projection_error").query("epoch == 3 and layer == 1 and convention == 'paper'")
    assert rows["feature_norm"].tolist() == pytest.approx(feature.mean((0, 2)).tolist())
    assert rows["projection_norm"].tolist() == pytest.approx(h.square().sum(-1).mean((0, 2)).tolist())
    assert rows["j_proj"].to_numpy() == pytest.approx((rows["feature_norm"] - rows["projection_norm"]).to_numpy())


def test_pursuit_goes_beyond_the_recipe_and_tries_every_convention(audited: Path) -> None:
    rows = table(audited, "rpc", "pursuit")
    assert sorted(rows["convention"].unique()) == ["paper", "reference", "textbook"]
    assert (rows["iteration"].max(), rows["recipe_iterations"].unique().tolist()) == (20, [2])
    planted = table(audited, "rpc", "planted")
    assert sorted(planted["method"].unique()) == ["paper", "pcp", "reference", "textbook"]
    found = planted.dropna(subset="precision")
    assert found["precision"].between(0, 1).all()
    assert planted["recall"].between(0, 1).all()


def test_compression_is_of_both_splits_and_memberships_cover_the_patches(audited: Path) -> None:
    rows = table(audited, "tost", "compression")
    assert set(zip(rows["split"], rows["stage"], strict=True)) == {
        (split, stage) for split in ("train", "validation") for stage in ("before", "after")
    }
    maps = table(audited, "tost", "membership")
    sums = maps.groupby(["image", "layer", "row", "column"])["value"].sum()
    assert sums.to_numpy() == pytest.approx(1)
    assert (maps["row"].max(), maps["column"].max()) == (1, 1)
    pictures = table(audited, "tost", "images")
    assert len(pictures) == 6 * 8 * 8
    assert pictures["red"].between(0, 1).all()


def test_objective_of_the_chosen_weights_is_the_auxiliary_loss(audited: Path) -> None:
    """One primal layer, convention paper: the term is η · mean J²; deviation and mean give mean J² back."""
    rows = table(audited, "primal_plus", "duality").query("epoch == 3 and head == 0")
    opened = open_run(Run(audited / "x" / "primal_plus" / "0"), CPU, "last")
    images, _ = next(opened.data.splits["validation"].first(6).batches(6))
    opened.model(images)
    mechanism = opened.model.mechanisms()[1]
    term = mechanism.auxiliary_loss().item() / mechanism.eta  # type: ignore[operator]
    mean_square = rows["objective"].item() ** 2 + rows["objective_std"].item() ** 2 * 5 / 6
    assert mean_square == pytest.approx(term, rel=1e-4)
    assert rows["objective"].item() == pytest.approx(rows["objective_paper"].item())


def test_the_command_draws_and_writes_the_page(audited: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "audit", "x", "--report", "--results", audited, "--output", audited / "page")
    assert said.code == 0, said.err
    text = (audited / "page" / "audit.md").read_text(encoding="utf-8")
    assert "undecided" in text
    assert "![alignment](alignment.png)" in text
    claims = pd.read_csv(audited / "page" / "claims.csv")
    assert {"holds", "does not hold"} & set(claims["verdict"]) <= {"holds"}
    for picture in ("projection_error", "pursuit", "duality", "compression"):
        assert (audited / "page" / f"{picture}.pdf").stat().st_size > 1000


def test_a_run_without_anything_to_audit_says_so(audited: Path, capfd: pytest.CaptureFixture[str]) -> None:
    only = ("--only", "pursuit", "--inputs", 2)
    said = kattn(capfd, "audit", "x/linear", *only, "--results", audited, "--output", audited / "none")
    assert said.code == 0, said.err
    assert "nothing to measure in this model" in said.out


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--only", "alignement"), 'did you mean "alignment"?'),
        (("--only", "pursuit", "--report"), "leave out one of them"),
        (("--report", "--table", "no.csv"), "no.csv: cannot be read: No such file or directory"),
    ],
)
def test_faults_are_one_line(
    arguments: tuple[str, ...], words: str, audited: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    said = kattn(capfd, "audit", "x/softmax", "--results", audited, "--output", audited / "faults", *arguments)
    assert said.code == 2
    assert words in said.err
    assert said.err.count("\n") == 1


def test_spectrum_of_every_kind_and_epoch(audited: Path, capfd: pytest.CaptureFixture[str]) -> None:
    names = [f"x/{name}" for name in RECIPES]
    said = kattn(capfd, "spectrum", *names, "--results", audited, "--inputs", 5, "--checkpoint", "last")
    assert said.code == 0, said.err
    assert (audited / "x" / "linear" / "0" / "effective_rank.csv").is_file()
    softmax = pd.read_csv(audited / "x" / "softmax" / "0" / "spectrum.csv")
    assert softmax["index"].max() == softmax["of"].unique().item() == 5
    last = softmax[softmax["index"] == 5]
    assert last["cumulative_explained_variance"].to_numpy() == pytest.approx(1)
    tost = pd.read_csv(audited / "x" / "tost" / "0" / "spectrum.csv")
    assert tost["of"].unique().tolist() == [4 * 8]
    ranks = pd.read_csv(audited / "x" / "softmax" / "0" / "effective_rank.csv")
    assert sorted(ranks["epoch"].unique()) == [0, 2, 3]
    assert ranks["numerical_rank"].between(1, 5).all()
    assert (ranks["effective_rank"] <= ranks["of"]).all()


def test_randomised_spectrum_agrees_with_the_exact_one(audited: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = audited / "x" / "softmax" / "0" / "spectrum.csv"
    kattn(capfd, "spectrum", "x/softmax", "--results", audited, "--inputs", 3)
    exact = pd.read_csv(path)
    kattn(capfd, "spectrum", "x/softmax", "--results", audited, "--inputs", 3, "--exact", 2)
    randomised = pd.read_csv(path)
    np.testing.assert_allclose(randomised["singular_value"], exact["singular_value"], atol=1e-6)
    assert (exact["error"] == 0).all()
    assert (randomised["error"] < 1e-5).all()
