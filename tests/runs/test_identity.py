"""Which rows are one measurement: by all columns but those that are declared otherwise."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kattn_cli.runs.csv_rows import append_rows, read_rows, replace_rows
from kattn_cli.runs.identity import identity, identity_columns

OF_WEIGHTS = "checkpoint,step,weights"
TABLES = {
    "attacks": (
        "attack,norm,epsilon,epsilon_units,steps,step_size,restarts,targeted,seed,images,clean_top1,top1,top1_low,"
        "top1_high,top5,target_rate,mean_linf,mean_l2,mean_l1,seconds,checkpoint,step,weights,batch_size,per_image,"
        "run_as,gradient_as,correct",
        "attack,norm,epsilon,epsilon_units,steps,step_size,restarts,targeted,seed,images,checkpoint,weights,run_as,gradient_as",
    ),
    "eval": (
        "split,corruption,severity,parameters,seed,images,classes,top1,top1_low,top1_high,top5,loss,ece,aupr,"
        "aupr_chance,checkpoint,step,weights,textures,path,run_as,correct",
        "split,corruption,severity,parameters,seed,images,checkpoint,weights,textures,run_as",
    ),
    "segmentation": (
        "split,corruption,severity,parameters,seed,images,checkpoint,step,weights,textures,classes,pixel_accuracy,"
        "mean_accuracy,mean_iou,loss",
        "split,corruption,severity,parameters,seed,images,checkpoint,weights,textures",
    ),
    "segmentation_classes": (
        "split,corruption,severity,parameters,seed,images,checkpoint,step,weights,textures,class,iou,accuracy,pixels",
        "split,corruption,severity,parameters,seed,images,checkpoint,weights,textures,class",
    ),
    "perplexity": (
        "corpus,split,swap_share,swap_seed,window,stride,asked,checkpoint,step,weights,tokens,loss,perplexity,"
        "bits_per_byte,top1,top5,unknown,seconds",
        "corpus,split,swap_share,swap_seed,window,stride,asked,checkpoint,weights",
    ),
    "rollouts": (
        "environment,target_return,episode,seed,checkpoint,step,weights,return,normalised_score,length,seconds",
        "environment,target_return,episode,seed,checkpoint,weights",
    ),
    "experts": (
        "split,epoch,asked,checkpoint,step,weights,layer,expert,tokens,share,probability,dropped,dropped_share",
        "split,epoch,asked,checkpoint,weights,layer,expert",
    ),
    "sensitivity": (
        "split,images,run_as,checkpoint,step,weights,margin_mean,margin_median,logit_scale,gradient_l1_mean,"
        "gradient_l1_median,zero_gradient_share",
        "split,images,run_as,checkpoint,weights",
    ),
    "attack_checks": (
        "check,verdict,evidence,epsilon,seed,checkpoint,weights,commit,step",
        "check,epsilon,seed,checkpoint,weights",
    ),
}


@pytest.mark.parametrize("table", TABLES)
def test_what_identifies_a_row_of_each_table(table: str) -> None:
    columns, identifying = TABLES[table]
    assert identity_columns(columns.split(",")) == identifying.split(",")


PGD: dict[str, Any] = {
    "attack": "pgd", "norm": "linf", "epsilon": 4 / 255, "steps": 20, "step_size": 0.1, "restarts": 1,
    "targeted": False, "seed": 0, "images": 40, "top1": 50.0, "seconds": 1.5, "checkpoint": "best", "weights": "ab12",
}  # fmt: skip


@pytest.mark.parametrize(
    "other",
    [
        {"step_size": 0.2},
        {"checkpoint": "last"},
        {"weights": "cd34"},
        {"seed": 1},
        {"images": 200},
        {"targeted": True},
        {"run_as": "fashion_mnist/trained/rpc"},
        {"gradient_as": "fashion_mnist/trained/rpc"},
        {"an_option_of_tomorrow": "on"},
    ],
    ids=str,
)
def test_other_measurements_stay_and_the_same_gives_way(tmp_path: Path, other: dict[str, Any]) -> None:
    """Also where an option is a column that nobody has declared."""
    path = tmp_path / "attacks.csv"
    append_rows(path, [PGD])
    replace_rows(path, [{**PGD, **other, "top1": 60.0}])
    assert [row["top1"] for row in read_rows(path)] == ["50.0", "60.0"]
    replace_rows(path, [{**PGD, **other, "top1": 70.0, "seconds": 9.9}])
    assert [row["top1"] for row in read_rows(path)] == ["50.0", "70.0"]
    replace_rows(path, [{**PGD, "top1": 80.0}])
    assert [row["top1"] for row in read_rows(path)] == ["80.0", "70.0"]


def test_rows_of_an_earlier_version_give_way() -> None:
    """Without the columns of later ones, which had no other value then; without the name of the weights."""
    old = {key: str(value) for key, value in PGD.items() if key not in ("norm", "restarts", "targeted")}
    assert identity(old) == identity(PGD)
    assert identity({**old, "epsilon": "0.015686274509803920", "steps": "20.0"}) == identity(PGD)
    assert identity({**PGD, "weights": "1e5"}) != identity({**PGD, "weights": "100000"}), "no numbers"


def test_weights_that_are_not_named_may_be_any(tmp_path: Path) -> None:
    path = tmp_path / "attacks.csv"
    append_rows(path, [{key: value for key, value in PGD.items() if key != "weights"}])
    replace_rows(path, [{**PGD, "checkpoint": "last"}])
    assert len(read_rows(path)) == 2
    replace_rows(path, [PGD])
    assert [(row["checkpoint"], row["weights"]) for row in read_rows(path)] == [("best", "ab12"), ("last", "ab12")]
