"""``kattn model-costs``: whole models without their data, their table, going on, and errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import torch
from command_line import kattn

from kattn_cli.commands.model_costs import measure as model_costs
from kattn_cli.commands.model_costs import models as measured
from kattn_cli.commands.model_costs.measure import measure_models
from kattn_cli.commands.model_costs.models import measured_models
from kattn_cli.commands.plot.plot import plot_table
from kattn_cli.data.sequences import Padded
from kattn_cli.errors import RecipeError

RECIPE = """\
name: {name}
data: {{name: imagefolder, root: nowhere, image_size: 8, {classes}validation: 0.02}}
model: {{name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}}
attention: {{name: {attention}}}
train: {{batch_size: 512, accumulate: 4, {train}}}
"""
COLUMNS = [
    "model", "attention", "version", "pass", "device", "dtype", "n", "batch", "milliseconds", "spread", "repeats",
    "milliseconds_per_sample", "peak_mib", "held_mib", "forward_flops_per_sample", "matrix_product_flops_per_sample",
    "parameters", "status",
]  # fmt: skip
ALL = "mixup: 0.8, cutmix: 1.0, clip_grad: 1.0, ema: 0.9, randaugment: rand-m9-mstd0.5-inc1, repeats: 3, flip: 0.5"


def write(folder: Path, name: str, attention: str, train: str = "", classes: str = "classes: 7, ") -> str:
    path = folder / f"{name}.yaml"
    path.write_text(RECIPE.format(name=name, attention=attention, train=train, classes=classes), encoding="utf-8")
    return str(path)


def run(results: Path, references: list[str], resume: bool = False, **changes: Any) -> Path:
    given: dict[str, Any] = {"passes": ["forward", "forward+backward"], "lengths": [], "batches": [2]}
    given |= {"precision": "float32", "operators": ["fast"], "device": torch.device("cpu"), "seconds": 0.0}
    return measure_models(references, **given | {"limit": None, **changes}, results=results, resume=resume)


def test_the_table(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Of models whose images are nowhere; a training step with all that a recipe can ask for."""
    references = [write(tmp_path, "a", "softmax"), write(tmp_path, "b", "tssa", ALL)]
    path = run(tmp_path, references, operators=["fast", "slow"])
    table = pd.read_csv(path)
    assert path == tmp_path / "complexity" / "models-cpu.csv"
    assert list(table) == COLUMNS
    assert table["status"].tolist() == ["ok"] * 8, table["status"].unique()
    keys = list(zip(table["pass"], table["model"], table["version"], strict=True))
    assert keys[:4] == [("forward", one, version) for one in "ab" for version in ("fast", "slow")]
    assert keys[4:] == [("training step", *key[1:]) for key in keys[:4]]
    assert (table["milliseconds_per_sample"] * 2 - table["milliseconds"]).abs().max() < 1e-3
    assert (table["peak_mib"] > 0).all()
    assert (table["n"].unique(), table["attention"].unique().tolist()) == ([4], ["softmax", "tssa"])

    fast = table[table["version"] == "fast"].set_index(["pass", "model"])
    parameters = fast.loc[("forward", "a"), "parameters"]
    weights = 4 * parameters / 2**20
    held = {key: fast.loc[key, "held_mib"] for key in fast.index}
    assert held["forward", "a"] == pytest.approx(weights, abs=2e-3)
    assert held["training step", "a"] == pytest.approx(3 * weights, abs=2e-3)  # with AdamW's two moments
    assert held["training step", "b"] == pytest.approx(4 * held["forward", "b"], abs=2e-3)  # and the averaged weights

    assert json.loads(path.with_suffix(".json").read_text())["status"] == "complete"
    assert pd.read_csv(path.with_suffix(".ratios.csv"))["time_ratio"][0] == 1
    said = capfd.readouterr().out
    assert "training step, batch 2, float32" in said
    assert "b (slow)" in said
    assert "mechanisms by their formulas, the rest by torch's counter" in said
    assert plot_table(path) == [path.with_suffix(".png")]


def test_decoders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"DEPTH": 2, "DIM": 16, "HEADS": 2, "VOCABULARY": 11}.items():
        monkeypatch.setattr(measured, name, value)
    references = ["decoder/softmax", "decoder/primal"]
    table = pd.read_csv(run(tmp_path, references, lengths=[32, 16], precision="bfloat16"))
    assert table["status"].unique().tolist() == ["ok"], table["status"].unique()
    assert table["n"].tolist() == [16, 32] * 4
    assert table["dtype"].unique().tolist() == ["bfloat16"]
    first = table.iloc[0]
    n, c = 16, 16
    layer = 2 * n * c * 4 * c + 4 * n * n * c
    assert first["matrix_product_flops_per_sample"] == 2 * (layer + 2 * 2 * n * c * 4 * c) + 2 * n * c * 11
    assert table["held_mib"][4] == pytest.approx(3 * table["held_mib"][0], rel=0.05)


def test_the_published_numbers_are_shown(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "mine.yaml"
    text = RECIPE.format(name="imagenet/symvit_tiny", attention="symmetric", train="", classes="classes: 7, ")
    path.write_text(text, encoding="utf-8")
    run(tmp_path, [str(path)], passes=["forward"])
    said = capfd.readouterr().out
    assert "1181 MB 1.00×" in said
    assert "1.17 to 1.35 M flops a sample cannot be right for a ViT-tiny" in said


def test_going_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    references = [write(tmp_path, "a", "softmax"), write(tmp_path, "b", "tssa")]
    usual, calls = model_costs.measure, list[str]()

    def interrupted(module: Any, *args: Any, **options: Any) -> Any:
        calls.append(type(module).__name__)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return usual(module, *args, **options)

    monkeypatch.setattr(model_costs, "measure", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(tmp_path, references)
    table = pd.read_csv(run(tmp_path, references, resume=True))
    assert calls == ["Inference"] * 2 + ["TrainingStep"] * 3
    assert table["model"].tolist() == ["a", "b", "a", "b"]


def test_rows_of_what_fails_and_of_what_does_not_fit(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "import torch\nfrom torch import nn\n\n\nclass Mine(nn.Module):\n"
        "    def __init__(self, dim, heads, *, seq_len, causal=False):\n        super().__init__()\n"
        "    def forward(self, x):\n"
        "        if self.training and len(x) > 1:\n            raise RuntimeError('no\\nway')\n"
        "        return x if len(x) < 2 else x + torch.ones(2**31).sum()\n"
    )
    reference = write(tmp_path, "a", f"'{tmp_path / 'mine.py'}:Mine'")
    table = pd.read_csv(run(tmp_path, [reference, write(tmp_path, "b", "tssa")], limit=2**30))
    assert table["status"].tolist() == ["out of memory", "ok", "failed: RuntimeError: no", "ok"]
    assert table["milliseconds"].notna().tolist() == [False, True, False, True]


def test_recipes_of_a_folder_and_their_tokens() -> None:
    models = {model.name: model for model in measured_models(["quickstart", "quickstart/rpc"], [])}
    assert len(models) == 5
    assert (models["quickstart/rpc"].tokens, models["quickstart/rpc"].attention) == (16, "rpc")
    (one,) = measured_models(["imagenet/rpc_symvit_tiny"], [])
    assert one.tokens == 197
    assert one.sample(3).shape == (3, 3, 224, 224)
    assert [model.tokens for model in measured_models(["decoder/tssa"], [])] == [4096, 8192]


@pytest.mark.parametrize(
    ("reference", "tokens", "inputs"),
    [
        ("segmentation/canvases/softmax", 65, (2, 1, 64, 64)),
        ("segmentation/ade20k/rpc_symvit_tiny", 1025, (2, 3, 512, 512)),
        ("imagenet/rpc_fan_tiny", 196, (2, 3, 224, 224)),
        ("lra/listops/tssa", 2000, (2, 2000)),
    ],
)
def test_models_of_every_kind_without_their_data(reference: str, tokens: int, inputs: tuple[int, ...]) -> None:
    (model,) = measured_models([reference], [])
    sample = model.sample(2, "meta")
    values = sample.values if isinstance(sample, Padded) else sample
    assert (model.tokens, tuple(values.shape)) == (tokens, inputs)


def test_a_decision_transformer_needs_no_trajectories_to_be_measured(tmp_path: Path) -> None:
    (model,) = measured_models(["control/small/hopper/tssa"], [])
    sample: Any = model.sample(2)
    assert (model.tokens, sample.states.shape) == (60, (2, 20, 11))
    table = pd.read_csv(run(tmp_path, ["control/small/hopper/tssa"]))
    assert set(table["status"]) == {"ok"}


def test_a_mixture_of_experts_on_a_text_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("some words and some more words. " * 400, encoding="utf-8")
    changes = [f"data.path={tmp_path / 'text.txt'}", "data.vocabulary=characters", "data.vocabulary_size=null"]
    (model,) = measured_models(["language/moe/small_symmetric"], [], changes)
    built = model.build()
    assert built(model.sample(2)).shape[:2] == (2, model.tokens)


@pytest.mark.parametrize(
    ("references", "message"),
    [
        ([], "No recipe was named. For example: kattn model-costs "),
        (["quickstart/sofmax"], 'there is no such recipe; did you mean "quickstart/softmax"'),
        (["decoder/tsa"], 'decoder/tsa: expected one of .*; did you mean "tssa"'),
        (["decoder/xca"], "decoder/xca: attention xca: has no causal form; these are causal: softmax, symmetric"),
    ],
)
def test_references_that_name_nothing(references: list[str], message: str) -> None:
    with pytest.raises(RecipeError, match=message):
        measured_models(references, [])


def test_two_recipes_of_one_name_and_unknown_classes(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    references = [write(tmp_path, "a", "softmax"), write(tmp_path / "other", "a", "tssa")]
    with pytest.raises(RecipeError, match="another recipe is named a too; rename one"):
        measured_models(references, [])
    with pytest.raises(RecipeError, match=r"c: give data.classes, since the images of .* are not here to tell"):
        measured_models([write(tmp_path, "c", "softmax", classes="")], [])


@pytest.mark.parametrize("command", [["model-costs"], ["complexity", "--model"]])
def test_the_command_line(command: list[str], tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Also as an option of ``kattn complexity``, as it was."""
    options = [
        "--pass",
        "forward",
        "--batch",
        "4",
        "--operators",
        "slow",
        "--memory",
        "1",
        "--seconds",
        "0.01",
        "--device",
        "cpu",
        "train.lr=0.1",
    ]
    said = kattn(capfd, *command, write(tmp_path, "a", "tssa"), *options, "--results", tmp_path)
    assert said.code == 0, said.err
    path = tmp_path / "complexity" / "models-cpu.csv"
    assert said.out.splitlines()[-2:] == [str(path), str(path.with_suffix(".png"))]
    settings = json.loads(path.with_suffix(".json").read_text())["settings"]
    assert settings == {
        "models": [["a", 4]], "overrides": ["train.lr=0.1"], "passes": ["forward"], "batches": [4], "dtype": "float32",
        "operators": ["slow"], "seconds": 0.01, "limit": 2**30, "threads": torch.get_num_threads(),
    }  # fmt: skip
