"""The papers' tables of series, Long-Range Arena and language: transcribed rightly, and ours laid beside them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml
from papers.laid import laid, markdown
from sequence_runs import ATTENTIONS, LISTOPS, write_classified, write_language, write_run

from kattn_cli.papers.described import sequence_model, sequence_run
from kattn_cli.runs.csv_rows import read_rows, write_rows
from kattn_cli.runs.run import Run, create_run
from kattn_cli.statistics.two_way import compare
from kattn_cli.tables.summary import summary

VOWELS = {"name": "uea", "set": "JapaneseVowels"}


def numbers_of(table: pd.DataFrame, metric: str, column: str, **where: Any) -> dict[str, Any]:
    """``column`` by the last part of the label."""
    rows = table[table["metric"] == metric]
    for key, value in where.items():
        rows = rows[rows[key] == value]
    short = [label.rpartition("/")[2] for label in rows["label"]]
    assert len(set(short)) == len(rows)
    return dict(zip(short, rows[column], strict=True))


def classified(results: Path, folder: str, data: dict[str, Any], gains: Mapping[str, Iterable[float]]) -> list[Run]:
    """Softmax has 90 + seed; the others so much more."""
    return [
        write_classified(results, f"{folder}/{name}", seed, data, 90 + seed + gain, size=(2, 512))
        for name, part in {"softmax": (0, 0, 0), **gains}.items()
        for seed, gain in enumerate(part)
    ]


def test_series_beside_table_1(tmp_path: Path) -> None:
    gains = {"primal_plus": (3.0, 4.0, 5.0), "primal": (-3.0, 0.0, 3.0), "tssa": (-0.9, -1.0, -1.1)}
    table = laid(classified(tmp_path, "series/vowels", VOWELS, gains), "primal")
    assert set(table["row"]) == {"JapaneseVowels"}
    assert set(table["setting"]) == {"JapaneseVowels (2 × 512)"}
    means, paper = numbers_of(table, "top1", "mean"), numbers_of(table, "top1", "paper")
    assert means == pytest.approx({"softmax": 91, "primal_plus": 95, "primal": 91, "tssa": 90})
    assert {name: paper[name] for name in ("softmax", "primal", "primal_plus")} == {
        "softmax": 98.7,
        "primal": 98.4,
        "primal_plus": 98.9,
    }
    assert pd.isna(paper["tssa"])
    verdicts = numbers_of(table, "top1", "verdict")
    assert (verdicts["primal_plus"], verdicts["primal"], verdicts["tssa"]) == ("better", "undecided", "undecided")
    arms = {"softmax": dict.fromkeys(range(3), 0.0), **{name: dict(enumerate(part)) for name, part in gains.items()}}
    (effect, *_) = compare(arms, [(name, "softmax") for name in gains])
    ends = [numbers_of(table, "top1", f"difference_{end}")["primal_plus"] for end in ("low", "high")]
    assert ends == pytest.approx(effect.interval())
    assert numbers_of(table, "top1", "paper_difference")["primal_plus"] == pytest.approx(0.2)


def test_costs_are_of_a_typical_epoch(tmp_path: Path) -> None:
    """The first epoch takes ten times as long as the other two, which have 2 s for 100 steps."""
    table = laid(classified(tmp_path, "series/vowels", VOWELS, {}), "primal")
    assert numbers_of(table, "seconds_per_epoch", "mean") == {"softmax": pytest.approx(2.0)}
    assert numbers_of(table, "seconds_per_epoch", "paper") == {"softmax": 0.5}
    assert numbers_of(table, "memory_gb", "mean") == {"softmax": 0.5}
    listops = laid(classified(tmp_path, "lra", LISTOPS, {}), "primal")
    assert numbers_of(listops, "seconds_per_1k_steps", "mean") == {"softmax": pytest.approx(20.0)}
    assert numbers_of(listops, "seconds_per_1k_steps", "paper") == {"softmax": 194.5}


def test_times_of_two_devices_are_not_compared(tmp_path: Path) -> None:
    runs = [
        write_classified(tmp_path, f"lra/{name}", seed, LISTOPS, 30, seconds * (1 + wobble * (seed - 1)), device=device)
        for name, seconds, device, wobble in (
            ("softmax", 2.0, "cpu", 0),
            ("tssa", 1.0, "cuda:0", 0),
            ("primal", 1.5, "cpu", 0.01),
        )
        for seed in range(3)
    ]
    table = laid(runs, "primal")
    differences = numbers_of(table, "seconds_per_1k_steps", "difference")
    assert differences["primal"] == pytest.approx(-5.0)
    assert pd.isna(differences["tssa"])
    assert numbers_of(table, "seconds_per_1k_steps", "verdict")["primal"] == "", "a cost is no verdict"
    assert numbers_of(table, "top1", "difference")["tssa"] == 0


def test_what_was_run_is_not_mistaken_for_the_paper_s(tmp_path: Path) -> None:
    runs = [write_classified(tmp_path, f"lra/{name}", seed, LISTOPS, 30 + seed) for name in ("softmax", "tssa")
            for seed in range(2)]  # fmt: skip
    table = laid(runs, "tost")
    text = markdown(table, "tost")
    assert set(table["verdict"].dropna()) == {"undecided", ""}
    setting = "listops (up to 128 tokens, 4,000 to train on, 2 × 64)"
    assert set(table["setting"]) == {setting}
    assert (
        f"- `{setting}` is not the paper's setting: up to 128 tokens (the paper: up to 2,000 tokens); "
        "2 × 64 (the paper: 6 × 512); 5 epochs (the paper: 90,000 steps)." in text
    )
    assert "| what was run | mechanism | top-1 (%) | paper | less softmax | paper | s for 1,000 steps | peak" in text
    assert f"| {setting} | softmax | 30.5 ± 6.4 | 37.11 |  |  | 20.0 ± 0.0 | 0.50 ± 0.00 | 2 |" in text
    assert "|  | tssa | 30.5 ± 6.4 | 37.25 | +0.0 (undecided) | +0.14 | 20.0 ± 0.0 | 0.50 ± 0.00 | 2 |" in text
    assert (
        f"- {setting}: top-1 of `tssa` less that of `softmax`: in the paper +0.14 points; "
        "here +0.0 points (the same for 2 seeds), undecided." in text
    )
    assert laid(runs, "rpc").empty


def test_the_paper_s_own_setting_is_told_as_that(tmp_path: Path) -> None:
    data = {"name": "listops", "max_length": 2000, "train": 96_000}
    run = write_classified(tmp_path, "softmax", 0, data, 37.0, size=(2, 64), device="one V100")
    table = laid([run], "primal")
    assert set(table["differs"]) == {""}
    assert set(table["setting"]) == {"listops (up to 2,000 tokens, 2 × 64)"}
    assert "not the paper's setting" not in markdown(table, "primal")


def language(results: Path) -> list[Run]:
    gains = {"symmetric": 0.5, "rpc": 0.25, "softmax": 0.0, "primal_plus": 0.125, "tssa": 1.0}
    return [
        write_language(results, f"text/{name}", seed, 4 + seed + gain * (1 + 0.01 * seed))
        for name, gain in gains.items()
        for seed in range(3)
    ]


def test_perplexity_beside_table_3(tmp_path: Path) -> None:
    table = laid(language(tmp_path), "rpc")
    setting = "text poems (characters, context 64, 4 × 128, stride 1)"
    clean = numbers_of(table, "perplexity", "mean", setting=setting)
    assert clean["rpc"] == pytest.approx(5.25 + 0.25 * 0.01), "of stride 1, not of 32"
    swapped = numbers_of(table, "swapped_perplexity", "mean", share=0.2)
    assert swapped["rpc"] == pytest.approx(1.2 * clean["rpc"] + 0.5), "the mean over two draws of the words"
    paper = [
        numbers_of(table, "perplexity", "paper", row=f"WikiText-103 {split}")["rpc"] for split in ("validation", "test")
    ]
    assert paper == [37.38, 35.26]
    assert numbers_of(table, "swapped_perplexity", "paper", share=0.05)["symmetric"] == 44.32
    assert numbers_of(table, "perplexity", "baseline", setting=setting)["rpc"] == "symmetric"
    assert numbers_of(table, "perplexity", "verdict", setting=setting)["rpc"] == "better", "lower is better"
    assert numbers_of(table, "perplexity", "verdict", setting=setting)["tssa"] == "worse"
    text = markdown(table, "rpc")
    assert "| perplexity | paper | less symmetric | paper | 5 % swapped | 20 % swapped | paper | seeds |" in text
    assert (
        f"- {setting}: perplexity with 20 % of the words swapped of `rpc` less that of `symmetric`: in the paper "
        in text
    )
    assert (
        f"`{setting}` is not the paper's setting: text poems (the paper: wikitext103); 4 iterations in 4 of 4 layers "
        "(the paper: 4 iterations in layers 1 to 4)." in text
    )
    assert "−1.16; here −0.30 (95 % interval −0.31 … −0.29, 3 seeds), better." in text


def test_primal_in_the_last_layer_beside_table_7(tmp_path: Path) -> None:
    table = laid(language(tmp_path), "primal")
    assert set(table["row"]) == {"WikiText-103"}
    assert numbers_of(table, "perplexity", "paper")["primal_plus"] == 31.0
    assert numbers_of(table, "perplexity", "verdict")["primal_plus"] == "worse"
    assert numbers_of(table, "seconds_per_1k_steps", "mean")["softmax"] == pytest.approx(100.0)
    assert numbers_of(table, "memory_gb", "mean")["softmax"] == 2.0
    assert "in the paper −2.00; here +0.13 (95 % interval +0.12 … +0.13, 3 seeds), worse." in markdown(table, "primal")


def test_losses_on_other_corpora_beside_table_4(tmp_path: Path) -> None:
    table = laid(language(tmp_path), "tost")
    other = "ptb (characters, context 64, 4 × 128, stride 1, trained on text poems)"
    assert dict(zip(table["row"], table["setting"], strict=True))["PTB"] == other
    assert numbers_of(table, "loss", "mean", row="PTB")["softmax"] == pytest.approx(5.5)
    assert numbers_of(table, "loss", "paper", row="PTB")["tssa"] == 6.39
    assert numbers_of(table, "loss", "mean", row="text poems")["tssa"] == 2.0


def test_texts_of_other_lengths_are_not_compared(tmp_path: Path) -> None:
    runs = [write_language(tmp_path, f"text/{name}", 0, 5.0) for name in ("symmetric", "rpc")]
    rows = [{**row, "tokens": "100"} for row in read_rows(runs[1].folder / "perplexity.csv")]
    write_rows(runs[1].folder / "perplexity.csv", rows)
    table = laid(runs, "rpc")
    assert table["difference"].isna().all() if "difference" in table else True
    assert "here nothing was measured of both with one seed, so undecided." in markdown(table, "rpc")


def test_sentences_beside_tables_11_and_12(tmp_path: Path) -> None:
    data = {"name": "sst5", "vocabulary": "words", "seq_len": 64}
    runs = [
        write_classified(tmp_path, f"sst5/{name}", 0, data, top1) for name, top1 in (("softmax", 40.0), ("rpc", 41.0))
    ]
    write_rows(runs[1].folder / "eval.csv", [*read_rows(runs[1].folder / "eval.csv"),
               {"split": "validation", "severity": 0, "images": 100, "top1": 43.0}])  # fmt: skip
    table = laid(runs, "rpc")
    assert set(table["setting"]) == {"sst5 (up to 64 words, 2 × 64)"}
    assert numbers_of(table, "top1", "paper") == {"softmax": 49.23, "rpc": 50.36}
    assert numbers_of(table, "validation_top1", "mean") == {"rpc": 43.0}
    assert numbers_of(table, "train_top1", "mean")["rpc"] == 20.0, "of the best epoch, the second"


@pytest.mark.parametrize(
    ("attention", "model"),
    [
        ({"name": "rpc", "iterations": 4, "layers": {"1:": {"name": "symmetric"}}}, "rpc"),
        ({"name": "rpc", "iterations": 2, "asymmetric": "iterate"}, "rpc asymmetric"),
        ({"name": "rpc", "iterations": 4, "layers": {"1:": {"name": "softmax"}}}, ""),
        ({"name": "symmetric", "layers": {-1: {"name": "rpc", "iterations": 4}}}, ""),
        ({"name": "symmetric", "layers": {-1: {"name": "primal"}}}, ""),
        ({"name": "softmax", "layers": {"1:": {"name": "primal"}}}, ""),
        ({"name": "softmax", "layers": {"2:": {"name": "primal"}}}, "primal_plus"),
    ],
)
def test_the_paper_s_model_of_three_layers(attention: dict[str, Any], model: str) -> None:
    assert sequence_model(attention, 3) == model


def test_every_mechanism_in_all_layers_is_itself() -> None:
    assert {name: sequence_model(one, 2) for name, one in ATTENTIONS.items()} == {name: name for name in ATTENTIONS}
    assert sequence_model({"name": "tssa"}, 24, "24 × 1024") == "tssa medium"


@pytest.mark.parametrize(
    ("data", "task", "setting"),
    [
        ({"name": "pathfinder", "size": 32, "train": 160_000}, {"lra": "Pathfinder"},
         "pathfinder (32 × 32 pixels, 2 × 64)"),
        ({"name": "pathfinder", "size": 128, "train": 9}, {"lra": "Path-X"},
         "pathfinder (128 × 128 pixels, 9 to train on, 2 × 64)"),
        ({"name": "pixels", "size": 16, "train": None}, {"lra": "Image"}, "pixels (16 × 16 pixels, 2 × 64)"),
        ({"name": "imdb", "vocabulary": "bytes", "seq_len": 1000}, {"lra": "Text", "sentences": "IMDB"},
         "imdb (up to 1,000 bytes, 2 × 64)"),
        ({"name": "aan", "seq_len": 4000}, {"lra": "Retrieval"}, "aan (up to 4,000 bytes, 2 × 64)"),
        ({"name": "ptb", "vocabulary": "words", "context": 1024}, {}, "ptb (words, context 1,024, 2 × 64)"),
    ],
)  # fmt: skip
def test_the_paper_s_task(data: dict[str, Any], task: dict[str, str], setting: str, tmp_path: Path) -> None:
    run = sequence_run(write_run(tmp_path, "softmax", 0, data))
    assert run.tasks == task
    assert run.setting() == setting


def test_runs_on_images_have_no_row(tmp_path: Path) -> None:
    recipe = "model: {name: vit}\nattention: {name: softmax}\n"
    run = create_run(tmp_path, "a", 0, recipe, {"status": "finished", "start": "2026"})
    write_rows(run.folder / "eval.csv", [{"split": "test", "severity": 0, "images": 9, "top1": 50.0, "top5": 90.0}])
    assert set(laid([run], "primal")["table"]) == {"table7a", "v1_table5"}


def test_the_comparison_has_perplexities(tmp_path: Path) -> None:
    runs = [write_language(tmp_path, "text/rpc", seed, 4.0 + seed, parameters=7, train_seconds=1) for seed in range(2)]
    means = summary(runs).set_index("quantity")["mean"].to_dict()
    assert means == pytest.approx(
        {
            "params": 7,
            "perplexity": 4.5,
            "perplexity of ptb": 13.5,
            "perplexity, 5 % swapped": 4.5 * 1.05 + 0.5,
            "perplexity, 20 % swapped": 4.5 * 1.2 + 0.5,
            "train s": 1,
        }
    )


def test_part_of_a_text_says_so(tmp_path: Path) -> None:
    run = write_language(tmp_path, "text/rpc", 0, 4.0)
    rows = [{**row, "asked": "5000"} for row in read_rows(run.folder / "perplexity.csv")]
    write_rows(run.folder / "perplexity.csv", rows)
    settings = laid([run], "primal")["setting"]
    assert set(settings) == {"text poems (characters, context 64, 4 × 128, stride 1, first 5,000 tokens)"}


def ablated(results: Path, name: str, top1: float, data: dict[str, Any], **options: Any) -> Run:
    """A run of Primal-Attention with these options in its last layer."""
    run = write_classified(results, name, 0, data, top1)
    path = run.folder / "recipe.yaml"
    recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    layers = recipe["attention"]["layers"]
    (layers[-1] if layers else recipe["attention"]).update(options)
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    return run


def test_without_r_scores_beside_table_8(tmp_path: Path) -> None:
    names: dict[str, dict[str, str]] = {
        "a/primal": {},
        "b/primal": {"scores": "e"},
        "a/primal_plus": {},
        "b/primal_plus": {"scores": "e"},
    }
    runs = [ablated(tmp_path, name, 40, LISTOPS, **more) for name, more in names.items()]
    table = laid(runs, "primal")
    found = table[table["table"] == "table8"].set_index("label")
    assert found["paper"].to_dict() == dict(zip(names, (37.3, 36.8, 37.3, 37.1), strict=True))
    assert found["baseline"].to_dict() == dict(zip(names, ("b/primal", "", "b/primal_plus", ""), strict=True))
    assert found["paper_difference"]["a/primal"] == pytest.approx(0.5)
    others = table[(table["table"] == "table3") & (table["metric"] == "top1")].set_index("label")["paper"]
    assert others["a/primal"] == 37.3
    assert pd.isna(others["b/primal"]), "Table 3 is of the whole model"
    assert "Table 8: Long-Range Arena with r-scores and without (e)" in markdown(table, "primal")
    assert set(laid(runs[::2], "primal")["table"]) == {"table3", "table4"}


def test_projections_beside_tables_11_and_12(tmp_path: Path) -> None:
    for data, number, papers in ((VOWELS, "table11", [98.9, 99.2]), (LISTOPS, "table12", [37.3, 37.0])):
        more: tuple[dict[str, str], ...] = ({}, {"projection": "data-independent"})
        folder = tmp_path / number
        runs = [ablated(folder, f"{at}/primal_plus", 50, data, **one) for at, one in zip("ab", more, strict=True)]
        found = laid(runs, "primal", [number])
        assert found["paper"].tolist() == papers
        assert found["baseline"].tolist() == ["b/primal_plus", ""]
        assert set(found["table"]) == {number}


def test_eta_and_s_beside_table_9(tmp_path: Path) -> None:
    places = [(20, 0.0), (40, 0.5), (40, 0.7)]
    runs = [ablated(tmp_path, f"{s}_{eta}/primal", 90, VOWELS, s=s, eta=eta) for s, eta in places]
    found = laid(runs, "primal", ["table9"])
    assert found["row"].tolist() == ["JapaneseVowels s=20 eta=0", "JapaneseVowels s=40 eta=0.5"]
    assert found["paper"].tolist() == [98.1, 98.4]
    assert "| JapaneseVowels (2 × 64) s=40 eta=0.5 | primal | 90.0 | 98.4 |" in markdown(found, "primal")


def test_a_decoder_s_projections_are_no_ablation(tmp_path: Path) -> None:
    run = write_language(tmp_path, "text/primal_plus", 0, 4.0)
    path = run.folder / "recipe.yaml"
    recipe = yaml.safe_load(path.read_text(encoding="utf-8"))
    recipe["attention"]["layers"][-1]["projection"] = "data-independent"
    path.write_text(yaml.safe_dump(recipe), encoding="utf-8")
    table = laid([run], "primal")
    assert set(table["model"]) == {"primal_plus"}
