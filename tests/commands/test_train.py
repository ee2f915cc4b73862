"""What a recipe can ask of a training beside its numbers."""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest
import torch
from safetensors.torch import load_file

from kattn_cli.commands.report.flops import forward_flops
from kattn_cli.commands.train.dry_run import dry_run
from kattn_cli.commands.train.train import train
from kattn_cli.console import console
from kattn_cli.errors import CheckpointError, RecipeError, RunError, TrainingError
from kattn_cli.experiment import build as building
from kattn_cli.experiment import recipes, training_run
from kattn_cli.experiment.build import build, data_of
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import FORWARD_FLOPS, Run
from kattn_cli.runs.weights import weights_path
from kattn_cli.tables.summary import summary
from kattn_cli.training import checkpoint

CPU = torch.device("cpu")


def run_tiny(tiny_recipe: Path, tmp_path: Path, *overrides: str, seeds: tuple[int, ...] = ()) -> list[Run]:
    return train([str(tiny_recipe)], overrides, seeds, results=tmp_path / "results", device=CPU)


def parameters_of(tiny_recipe: Path) -> int:
    recipe = recipes.load(tiny_recipe)
    return sum(parameter.numel() for parameter in build(recipe, data_of(recipe)).parameters())


def test_seeds_of_the_recipe_and_of_the_command_line(tiny_recipe: Path, tmp_path: Path) -> None:
    runs = run_tiny(tiny_recipe, tmp_path, "seeds=[3, 1]", "train.epochs=1", "train.warmup_epochs=0")
    assert [run.seed for run in runs] == [3, 1]
    assert "seeds: null" in (runs[0].folder / "recipe.yaml").read_text()
    assert len({row["loss"] for run in runs for row in read_rows(run.folder / "metrics.csv")}) == 4
    table = summary(runs).set_index("quantity")
    assert table.loc["params", "seeds"] == 2
    assert table.loc["params", "std"] == 0
    (one,) = run_tiny(tiny_recipe, tmp_path, "seeds=[3, 1]", "train.epochs=1", "train.warmup_epochs=0", seeds=(7,))
    assert one.seed == 7


def test_a_line_for_each_epoch_where_there_is_no_terminal(
    tiny_recipe: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With what that epoch's own validation found, which the bar ends on, too."""
    (run,) = run_tiny(tiny_recipe, tmp_path)
    out = capfd.readouterr().out.splitlines()
    metrics = pd.read_csv(run.folder / "metrics.csv").set_index(["split", "epoch"])
    notes = []
    for epoch in (1, 2):
        trained, found = metrics.loc[("train", epoch)], metrics.loc[("validation", epoch)]
        notes.append(
            f"loss {trained['loss']:.2f} val top-1 {found['top1']:.1f} {trained['images_per_second']:,.0f} img/s"
        )
    assert [line for line in out if ": epoch " in line] == [
        f"{run.folder}: epoch {epoch}/2  {note}" for epoch, note in enumerate(notes, 1)
    ]
    assert any(line.startswith("tiny/0") and notes[1] in line for line in out)
    monkeypatch.setattr(console, "quiet", True)
    run_tiny(tiny_recipe, tmp_path)
    assert capfd.readouterr().out == ""


def test_a_run_says_its_operations_and_counting_them_changes_no_number(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = ["attention.name=performer", "attention.layers={}", "train.epochs=1", "train.warmup_epochs=0"]
    (counted,) = run_tiny(tiny_recipe, tmp_path, *given)
    assert counted.manifest[FORWARD_FLOPS] == forward_flops({"it": Run(counted.folder)})["it"].count
    monkeypatch.setattr(training_run, "flops_without_running", lambda recipe, folder: None)
    (not_counted,) = run_tiny(tiny_recipe, tmp_path, *given)
    assert FORWARD_FLOPS not in not_counted.manifest
    for which in ("best", "last"):
        ours, theirs = (load_file(weights_path(run.folder, which)) for run in (counted, not_counted))
        assert all(torch.equal(ours[name], theirs[name]) for name in ours)


def test_choosing_on_the_test_set_is_written_on_every_row(tiny_recipe: Path, tmp_path: Path) -> None:
    (run,) = run_tiny(tiny_recipe, tmp_path, "data.choose_on=test", "train.epochs=1", "train.warmup_epochs=0")
    assert run.manifest["chosen_on"] == "test"
    assert run.label.endswith("(chosen on test)")
    assert summary([run])["label"].str.endswith("(chosen on test)").all()


def test_dry_run_tells_and_writes_nothing(tiny_recipe: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    dry_run([str(tiny_recipe)], ["train.ema=0.9"], [0, 1], results=tmp_path / "results")
    out = " ".join(capfd.readouterr().out.split())
    assert "digits: 1,257 train, 185 validation, 355 test; 8 × 8 × 1, 10 classes" in out
    assert f"vit: {parameters_of(tiny_recipe):,} parameters" in out
    assert "RPCAttention (layer 0), SymmetricAttention (layer 1)" in out
    assert "5 an epoch × 2 epochs = 10, each of 256 images" in out
    assert f"{tmp_path}/results/tiny/0" in out.replace(" ", "")
    assert not (tmp_path / "results").exists()


def test_tensorboard_has_the_rows_of_the_table(tiny_recipe: Path, tmp_path: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    (run,) = run_tiny(tiny_recipe, tmp_path, "train.tensorboard=true")
    events = EventAccumulator(str(run.folder / "tensorboard"))
    events.Reload()
    rows = [row for row in read_rows(run.folder / "metrics.csv") if row["split"] == "validation"]
    logged = [(event.step, event.value) for event in events.Scalars("validation/loss")]
    assert [step for step, _ in logged] == [5, 10]
    assert [value for _, value in logged] == pytest.approx([float(row["loss"]) for row in rows], rel=1e-6)
    assert [event.step for event in events.Scalars("step/lr")] == [10]


def test_a_full_disk_ends_in_one_line_and_keeps_the_last_checkpoint(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is full from the second epoch's checkpoint on."""
    save_state = checkpoint.save_state
    saved: list[Path] = []

    def full(run: Path, state: dict[str, object]) -> None:
        if saved:
            raise CheckpointError(f"{run}/checkpoints/resume.pt: cannot be written: No space left on device")
        save_state(run, state)
        saved.append(run)

    monkeypatch.setattr("kattn_cli.experiment.training_run.save_state", full)
    with pytest.raises(CheckpointError, match=r"cannot be written: No space left on device$"):
        run_tiny(tiny_recipe, tmp_path)
    run = Run(tmp_path / "results" / "tiny" / "0")
    assert run.status == "failed"
    assert "No space left" in run.manifest["reason"]
    assert checkpoint.load_state(run.folder)["progress"]["step"] == 5


def test_a_folder_that_cannot_be_written_is_told_before_training(tiny_recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "results").write_text("in the way")
    with pytest.raises(RunError, match=r"cannot be made|is in the way"):
        run_tiny(tiny_recipe, tmp_path)


def test_fine_tuning_begins_from_a_run(tiny_recipe: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (first,) = run_tiny(tiny_recipe, tmp_path)
    overrides = ["name=tuned", f"init_from={first.folder}", "data.image_size=16", "model.patch_size=8"]
    (tuned,) = run_tiny(tiny_recipe, tmp_path, *overrides, "train.lr=1e-6")
    assert "resized: patch_embed.proj" in capfd.readouterr().out
    assert tuned.manifest["best_validation_top1"] == pytest.approx(first.manifest["best_validation_top1"], abs=5)
    assert tuned.manifest["weights"]["source"].endswith("best.safetensors")


OWN = """
import sys

from torch import nn


class Own(nn.Module):
    def __init__(self, dim, heads, *, seq_len, causal=False, ends=False):
        super().__init__()
        self.ends, self.w = ends, nn.Linear(dim, dim)

    def forward(self, x):
        if self.training and len(x) > 1:
            sys.exit(0) if self.ends else x @ x
        return self.w(x)
"""


@pytest.mark.parametrize("ends", ["true", "false"])
def test_a_mechanism_that_fails_in_training_only_is_one_line(tiny_recipe: Path, tmp_path: Path, ends: str) -> None:
    own = tmp_path / "own.py"
    own.write_text(OWN)
    with pytest.raises(RecipeError) as caught:
        run_tiny(tiny_recipe, tmp_path, f"attention={{name: {own}:Own, ends: {ends}}}")
    run = Run(tmp_path / "results" / "tiny" / "0")
    error = "SystemExit: 0" if ends == "true" else "RuntimeError: "
    assert str(caught.value).startswith(f"{run.folder}: {own}, line 14, in forward: {error}")
    assert "\n" not in str(caught.value)
    assert (run.status, f"{own}, line 14" in run.manifest["reason"]) == ("failed", True)


def test_a_model_that_is_too_large_for_the_memory(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Is counted, not built; where it is not, its first numbers are those of a model that was not counted."""
    monkeypatch.setattr(building, "LARGE", 0)
    count = parameters_of(tiny_recipe)
    recipe = recipes.load(tiny_recipe)
    models = []
    for large in (0, 10**9):
        monkeypatch.setattr(building, "LARGE", large)
        torch.manual_seed(3)
        models.append(build(recipe, data_of(recipe)).state_dict())
    assert all(torch.equal(tensor, models[1][name]) for name, tensor in models[0].items())
    monkeypatch.setattr(building, "LARGE", 0)
    monkeypatch.setattr(building, "available_bytes", lambda: 4 * count - 1)
    with pytest.raises(RecipeError, match=f"^tiny: model: its {count:,} parameters take 0 GB of memory, and 0.0 GB"):
        run_tiny(tiny_recipe, tmp_path)
    assert not (tmp_path / "results").exists()
    dry_run([str(tiny_recipe)], [], [], results=tmp_path / "results")


def test_what_cannot_begin_is_no_run(tiny_recipe: Path, tmp_path: Path) -> None:
    (first,) = run_tiny(tiny_recipe, tmp_path, "train.epochs=1", "train.warmup_epochs=0")
    with pytest.raises(CheckpointError, match=r"^tuned: .*: is of another architecture"):
        run_tiny(tiny_recipe, tmp_path, "name=tuned", f"init_from={first.folder}", "model.dim=32")
    with pytest.raises(TrainingError, match=r"^few: no step would be made"):
        run_tiny(tiny_recipe, tmp_path, "name=few", "train.batch_size=2000", "train.accumulate=2000")
    assert [one.name for one in (tmp_path / "results").iterdir()] == ["tiny"]


def test_weights_that_are_damaged_are_told_before_there_is_a_run(tiny_recipe: Path, tmp_path: Path) -> None:
    (first,) = run_tiny(tiny_recipe, tmp_path, "train.epochs=1", "train.warmup_epochs=0")
    path = weights_path(first.folder, "best")
    whole = bytearray(path.read_bytes())
    whole[-1] ^= 1
    path.write_bytes(whole)
    with pytest.raises(RecipeError, match=rf"init_from  {path} is damaged \(its checksum is another\)"):
        run_tiny(tiny_recipe, tmp_path, "name=tuned", f"init_from={first.folder}")
    assert not (tmp_path / "results" / "tuned").exists()


def test_the_compiled_model_trains_as_the_eager_one(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = torch.compile
    monkeypatch.setattr(torch, "compile", lambda model: real(model, backend="aot_eager"))
    overrides = ["attention={name: primal, s: 3}", "train.epochs=1", "train.warmup_epochs=0"]
    tables = []
    for settings in ([], ["train.compile=true"], ["train.compile=true", "train.grad_checkpointing=true"]):
        (run,) = run_tiny(tiny_recipe, tmp_path, *overrides, *settings)
        tables.append([float(row["loss"]) for row in read_rows(run.folder / "metrics.csv")])
    assert tables[1] == pytest.approx(tables[0], abs=1e-4)
    assert tables[2] == pytest.approx(tables[0], abs=1e-4)
