"""Weights run as the attention of another recipe and attacked through it: such rows stand apart."""

from __future__ import annotations

import shutil
from pathlib import Path

import pandas as pd
import pytest
import torch
from command_line import kattn
from torch import Tensor

from kattn_cli.attacks import AttackSettings
from kattn_cli.attacks.fgsm import perturb as fgsm
from kattn_cli.experiment.run import open_run
from kattn_cli.experiment.run_as import OtherAttention
from kattn_cli.models import Classifier
from kattn_cli.recipe.schema import Attention
from kattn_cli.runs.bits import unpacked
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run
from kattn_cli.tables.frames import attack_frame, frame
from kattn_cli.tables.values import values
from kattn_cli.training.opened import as_image_run

CPU = torch.device("cpu")
IMAGES, EPSILON = 40, 8 / 255
OTHER = """\
name: other
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}
"""


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of the trained run, RPC-Attention in its first layer and symmetric in its second, to write into."""
    return Run(Path(shutil.copytree(trained, tmp_path / "results")) / "tiny" / "0")


@pytest.fixture
def symmetric(tmp_path: Path) -> Path:
    """A recipe of symmetric attention in both, whose parameters are the run's."""
    path = tmp_path / "other.yaml"
    path.write_text(f"{OTHER}attention: symmetric\n")
    return path


def measure(run: Run, capfd: pytest.CaptureFixture[str], command: str, *options: str | Path | int) -> str:
    said = kattn(capfd, command, run.folder, *options, "--limit", IMAGES, "--device", "cpu")
    assert said.code == 0, said.err
    return said.out


def refused(capfd: pytest.CaptureFixture[str], *arguments: str | Path | int) -> str:
    said = kattn(capfd, *arguments, "--device", "cpu")
    assert said.code == 2
    return said.err.strip()


def models(run: Run) -> tuple[Classifier, Classifier]:
    """The run's own model, and one with its weights in symmetric attention, put there by hand."""
    own, built = (as_image_run(open_run(run, CPU), "a test").model for _ in range(2))
    other = OtherAttention("--run-as", "by hand", Attention(name="symmetric"))
    symmetric = as_image_run(open_run(run, CPU, other=other), "a test").model
    assert [type(one).__name__ for one in built.mechanisms()] == ["RPCAttention", "SymmetricAttention"]
    assert [type(one).__name__ for one in symmetric.mechanisms()] == ["SymmetricAttention"] * 2
    for name, tensor in own.state_dict().items():
        assert torch.equal(tensor, symmetric.state_dict()[name])
    return own, symmetric


def first_images(run: Run) -> tuple[Tensor, Tensor]:
    return next(as_image_run(open_run(run, CPU), "a test").data.splits["test"].batches(IMAGES))


def right(cell: str) -> list[bool]:
    return list(unpacked(cell, IMAGES).tolist())


def test_eval_writes_rows_of_their_own(run: Run, symmetric: Path, capfd: pytest.CaptureFixture[str]) -> None:
    fog = ("--corruption", "fog")
    measure(run, capfd, "eval", *fog)
    (run.folder / "corruption_errors.csv").unlink()
    before = read_rows(run.folder / "eval.csv")
    out = measure(run, capfd, "eval", *fog, "--run-as", symmetric)
    assert f"{run.folder} as other  test  top-1 " in out
    assert "measured before" not in out
    rows = read_rows(run.folder / "eval.csv")
    assert rows[:6] == before
    assert [(row["run_as"], row["corruption"], row["severity"]) for row in rows[6:]] == [
        ("other", "", "0"),
        *(("other", "fog", str(severity)) for severity in range(1, 6)),
    ]
    images, labels = first_images(run)
    own, other = models(run)
    for row, model in ((rows[0], own), (rows[6], other)):
        assert right(row["correct"]) == (model(images).argmax(-1) == labels).tolist()
    assert float(rows[0]["loss"]) != float(rows[6]["loss"])
    assert not (run.folder / "corruption_errors.csv").exists(), "which is of the run's own attention"
    assert "5 of 5 corruptions were measured before" in measure(run, capfd, "eval", *fog, "--run-as", symmetric)


def test_attack_by_the_gradient_of_the_one_and_judged_on_the_other(
    run: Run, symmetric: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    images, labels = first_images(run)
    settings = AttackSettings("linf", EPSILON, 1, 0.0)
    asked = ("--fgsm", "--epsilon", "8/255", "--batch-size", IMAGES)
    by_name = dict(zip(("", "other"), models(run), strict=True))
    for run_as, judge in by_name.items():
        for gradient_as, source in by_name.items():
            options: list[str | Path] = ["--run-as", symmetric] if run_as else []
            options += ["--gradient-as", symmetric] if gradient_as else []
            out = measure(run, capfd, "attack", *asked, *options)
            assert ("Checks" in out) == (not options), "checks are of a run in its own attention"
            found = fgsm(source.requires_grad_(False), images, labels, settings, torch.Generator())
            row = read_rows(run.folder / "attacks.csv")[-1]
            assert (row["run_as"], row["gradient_as"]) == (run_as, gradient_as)
            assert right(row["correct"]) == (judge(found).argmax(-1) == labels).tolist()
    rows = read_rows(run.folder / "attacks.csv")
    assert len(rows) == len({row["per_image"] for row in rows}) == 4
    assert "1 of 1 measurements are there already" in measure(run, capfd, "attack", *asked, "--run-as", symmetric)


def test_the_gradient_of_its_own_recipe_is_its_own(
    run: Run, tiny_recipe: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    asked = ("--pgd", "--epsilon", "8/255", "--no-checks")
    measure(run, capfd, "attack", *asked)
    measure(run, capfd, "attack", *asked, "--gradient-as", tiny_recipe, "--run-as", tiny_recipe)
    own, other = read_rows(run.folder / "attacks.csv")
    assert (other["run_as"], other["gradient_as"]) == ("tiny", "tiny")
    same = ("top1", "top5", "clean_top1", "mean_l2", "correct")
    assert [own[one] for one in same] == [other[one] for one in same]


def test_attacks_that_see_no_gradient_stand_aside(run: Run, symmetric: Path, capfd: pytest.CaptureFixture[str]) -> None:
    measure(run, capfd, "attack", "--epsilon", "8/255", "--gradient-as", symmetric)
    assert [row["attack"] for row in read_rows(run.folder / "attacks.csv")] == ["pgd", "fgsm"]
    assert refused(capfd, "attack", run.folder, "--square", "--pgd", "--gradient-as", symmetric) == (
        "--gradient-as: does not apply to square; it does to pgd, fgsm, sld, cw, autoattack"
    )


def test_tables_and_figures_are_of_the_runs_own(run: Run, symmetric: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Whether rows of another attention are there or not; these are there for whoever asks for them."""

    def shown() -> list[pd.DataFrame]:
        tables = [frame([run], "eval.csv"), attack_frame([run]), values([run])]
        assert not {"run_as", "gradient_as", "correct"} & {column for table in tables for column in table}
        return tables

    attacks = ("--fgsm", "--epsilon", "8/255")
    measure(run, capfd, "eval", "--corruption", "fog")
    measure(run, capfd, "attack", *attacks)
    drawn = {path: path.stat().st_mtime_ns for path in run.folder.parents[1].rglob("figures/*")}
    before, checks = shown(), (run.folder / "attack_checks.csv").read_text()
    measure(run, capfd, "eval", "--corruption", "fog", "--run-as", symmetric)
    for options in (["--run-as"], ["--gradient-as"]):
        measure(run, capfd, "attack", *attacks, *options, symmetric)
    for one, other in zip(before, shown(), strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert (run.folder / "attack_checks.csv").read_text() == checks
    assert {path: path.stat().st_mtime_ns for path in drawn} == drawn
    assert len(frame([run], "eval.csv", run_as="other")) == 6
    assert attack_frame([run], gradient_as="other")["attack"].tolist() == ["fgsm"]
    assert attack_frame([run], run_as="other", gradient_as="other").empty


@pytest.mark.parametrize("command", [("eval", "--run-as"), ("attack", "--run-as"), ("attack", "--gradient-as")])
def test_another_attention_must_have_the_same_parameters(
    run: Run, tmp_path: Path, capfd: pytest.CaptureFixture[str], command: tuple[str, str]
) -> None:
    name, option = command
    weights = run.folder / "checkpoints" / "best.safetensors"
    attention = {"softmax": "softmax", "no_bias": "{name: symmetric, layers: {-1: {name: rpc, qkv_bias: false}}}"}
    faults = {
        "softmax": "backbone.blocks.0.attn.qkv.weight, backbone.blocks.0.attn.qkv.bias and 2 more are missing",
        "no_bias": "backbone.blocks.1.attn.kv.bias is not in the model",
    }
    for kind, fault in faults.items():
        path = tmp_path / f"{kind}.yaml"
        path.write_text(f"{OTHER}attention: {attention[kind]}\n".replace("name: other", f"name: {kind}", 1))
        told = refused(capfd, name, run.folder, option, path)
        assert told == f"{weights}: does not fit {option} {kind}: {fault}"
    assert not (run.folder / "eval.csv").exists()
    assert not (run.folder / "attacks.csv").exists()


def test_other_options_it_does_not_go_with(
    run: Run, symmetric: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert refused(capfd, "eval", run.folder, "--run-as", symmetric, "--corruptions", "--reference", run.folder) == (
        "--run-as: is for the runs alone, and --reference is one, too; leave one of them out"
    )
    assert refused(capfd, "attack", run.folder, "--word-swap", "--run-as", symmetric) == (
        "--run-as and --gradient-as: go with attacks on images, not with --word-swap"
    )
    several = tmp_path / "several.yaml"
    several.write_text(f"{OTHER}variants: {{a: {{attention: symmetric}}, b: {{attention: rpc}}}}\n")
    assert refused(capfd, "eval", run.folder, "--run-as", several) == (
        f"--run-as {several}: means several recipes, {several}/a, {several}/b; name one"
    )
    layers = tmp_path / "layers.yaml"
    layers.write_text(f"{OTHER.replace('depth: 2', 'depth: 4')}attention: {{name: symmetric, layers: {{3: rpc}}}}\n")
    told = refused(capfd, "eval", run.folder, "--run-as", layers)
    assert told.startswith(f"--run-as other: {run.folder}/recipe.yaml: 1 fault, nothing was started\n")
    assert told.endswith("attention.layers.3  the model has 2 layers: 0 … 1, or -2 … -1")
