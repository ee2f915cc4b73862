"""Claims on images, each judged both ways on numbers that are chosen."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from papers.claim_tables import SEEDS, Rows, judge, run_with

from kattn_cli.errors import RunError
from kattn_cli.runs.run import Run

RPC = {
    "rpc": {"name": "rpc", "iterations": 4, "layers": {"1:": {"name": "symmetric"}}},
    "rpc_6": {"name": "rpc", "iterations": 6, "layers": {"1:": {"name": "symmetric"}}},
    "rpc_all": {"name": "rpc", "iterations": 2, "layers": {}},
}


def runs(folder: Path, table: str, rows: Callable[[float], Rows], **levels: float) -> list[Run]:
    """Recipes of one folder, each some points above a level that is the seed's own, with a little of its own."""
    return [
        run_with(
            folder,
            f"x/{name}",
            seed,
            {table: rows(level + 10 * seed + (0.01 * seed if level else 0))},
            attention=RPC.get(name, {"name": name}),
        )
        for name, level in levels.items()
        for seed in SEEDS
    ]


def clean(top1: float) -> Rows:
    return [{"split": "test", "severity": 0, "images": 9, "top1": 40 + top1}]


def trained(top1: float) -> Rows:
    return [{"epoch": 1, "split": "validation", "top1": 40 + top1, "loss": 1.0}]


def attacked(attack: str) -> Callable[[float], Rows]:
    def rows(top1: float) -> Rows:
        return [
            {"attack": attack, "norm": "linf", "epsilon": epsilon, "epsilon_units": units, "steps": 1, "restarts": 1,
             "targeted": False, "images": images, "top1": 40 + value}
            for epsilon, units, images, value in (
                (0.01, "pixels in [0, 1]", 200, top1), (0.02, "pixels in [0, 1]", 200, top1),
                (0.02, "normalised", 200, -30),
            )
        ]  # fmt: skip

    return rows


def corrupted(error: float) -> Rows:
    return [
        {"split": "test", "corruption": "fog", "severity": severity, "parameters": "", "seed": 0, "images": 9,
         "top1": 60 - error, "checkpoint": "best", "weights": "a"}
        for severity in range(1, 6)
    ]  # fmt: skip


def compared(error: float) -> Rows:
    return [
        {"corruption": name, "error": 1, "reference": "y", "reference_error": 1, "corruption_error": 40 + error}
        for name in ("fog", "snow")
    ]


def scored(aupr: float) -> Rows:
    return [{"split": "street", "severity": 0, "images": 9, "top1": 1.0, "aupr": 40 + aupr}, *clean(0)]


@pytest.mark.parametrize(
    ("claim", "table", "rows", "margin", "printed"),
    [
        ("accurate than symmetric attention on clean", "eval", clean, 1, {"rpc": 0.5, "rpc_6": 1.05, "rpc_all": 0.15}),
        ("symmetric attention under corruption", "eval", corrupted, -1, {"rpc": -0.9, "rpc_all": -0.19}),
        ("lower mCE", "corruption_errors", compared, -2, {"rpc": -1.17, "rpc_6": -1.72}),
        ("out of distribution", "eval", scored, 1, {"rpc": 1.89, "rpc_6": 2.86}),
        ("symmetric attention under PGD", "attacks", attacked("pgd"), 3, {"rpc": 0.17, "rpc_all": 1.14}),
        ("symmetric attention under FGSM", "attacks", attacked("fgsm"), 3, {"rpc": 3.24, "rpc_6": 3.84}),
        ("symmetric attention under SPSA", "attacks", attacked("spsa"), 3, {"rpc": 0.19}),
        ("symmetric attention under SLD", "attacks", attacked("sld"), 3, {"rpc_all": -0.31}),
        ("symmetric attention under CW", "attacks", attacked("cw"), 3, {"rpc": 1.56}),
        ("symmetric attention under uniform noise", "attacks", attacked("noise"), 3, {"rpc": 0.56}),
        ("symmetric attention under AutoAttack", "attacks", attacked("autoattack"), 3, {"rpc": 1.47}),
        ("Square attack", "attacks", attacked("square"), 3, {"rpc_6": 2.14}),
    ],
)
def test_rpc_beside_symmetric(
    claim: str, table: str, rows: Callable[[float], Rows], margin: int, printed: dict[str, float], tmp_path: Path
) -> None:
    """Twice the margin better at every seed, then worse, then a quarter of it, beside what the tables print of each.

    The margin's sign says which way is better.
    """
    better = judge(runs(tmp_path / "better", table, rows, symmetric=0, **dict.fromkeys(printed, 2 * margin)), claim)
    assert better["label"].tolist() == list(printed)
    assert better["verdict"].tolist() == ["better"] * len(printed)
    assert better["mean"].tolist() == pytest.approx([2 * margin + 0.01] * len(printed))
    assert better["margin"].tolist() == [abs(margin)] * len(printed)
    assert better["paper_number"].tolist() == pytest.approx(list(printed.values()))
    worse = judge(runs(tmp_path / "worse", table, rows, symmetric=0, **dict.fromkeys(printed, -2 * margin)), claim)
    assert worse["verdict"].tolist() == ["worse"] * len(printed)
    near = judge(runs(tmp_path / "near", table, rows, symmetric=0, **dict.fromkeys(printed, margin / 4)), claim)
    assert near["verdict"].tolist() == ["equivalent within the margin"] * len(printed)


@pytest.mark.parametrize(
    "control",
    [{"lambda": 1e9}, {"convention": "textbook"}, {"asymmetric": "iterate", "layers": {"1:": {"name": "softmax"}}}],
)
def test_controls_of_ours_are_not_the_paper_s(control: dict[str, Any], tmp_path: Path) -> None:
    """Without outliers, with another sign or with queries of its own it is not what the paper compares."""
    known = runs(tmp_path, "eval", clean, symmetric=0, rpc=2)
    known += [
        run_with(tmp_path, "x/rpc_other", seed, {"eval": clean(10 * seed)}, attention={**RPC["rpc"], **control})
        for seed in SEEDS
    ]
    assert judge(known, "accurate than symmetric attention on clean")["label"].tolist() == ["rpc"]


@pytest.mark.parametrize(
    ("claim", "table", "rows", "margin", "printed"),
    [
        ("six are more accurate", "eval", clean, 1, 0.55),
        ("six are more robust than four under corruption", "eval", corrupted, -1, -0.41),
        ("six are more robust than four under PGD", "attacks", attacked("pgd"), 3, 0.05),
        ("six are more robust than four under FGSM", "attacks", attacked("fgsm"), 3, 0.6),
    ],
)
def test_six_iterations_beside_four(
    claim: str, table: str, rows: Callable[[float], Rows], margin: int, printed: float, tmp_path: Path
) -> None:
    for gain, verdict in ((2 * margin, "better"), (-2 * margin, "worse")):
        found = judge(runs(tmp_path / verdict, table, rows, rpc=0, rpc_6=gain), claim)
        assert found["label"].tolist() == ["rpc_6"]
        assert found["verdict"].tolist() == [verdict]
        assert found["paper_number"].tolist() == pytest.approx([printed])


def test_only_what_was_measured_of_both_alike_is_compared(tmp_path: Path) -> None:
    """ε = 0.03 of one model alone, and more images of the other, do not count."""
    both = [dict(row) for row in attacked("pgd")(0)]
    extra = {**both[0], "epsilon": 0.03, "top1": 0.0}
    more = {**both[0], "images": 900, "top1": 99.0}
    models: dict[str, list[dict[str, Any]]] = {
        "symmetric": [*both, extra],
        "rpc": [{**row, "top1": row["top1"] + 2} for row in both],
    }
    first = [
        run_with(tmp_path, f"x/{name}", seed, {"attacks": rows}) for name, rows in models.items() for seed in SEEDS
    ]
    found = judge(first, "symmetric attention under PGD")
    assert (found["mean"].tolist(), found["beside"].tolist()) == ([2.0], ["42 against 40 %"])
    many = [
        run_with(tmp_path / "many", f"x/{name}", seed, {"attacks": [*rows, *([more] if name == "rpc" else [])]})
        for name, rows in models.items()
        for seed in SEEDS
    ]
    assert judge(many, "symmetric attention under PGD")["mean"].tolist() == [2.0]


@pytest.mark.parametrize(
    ("claim", "ours", "base", "rows", "table", "within", "printed"),
    [
        ("accurate than its softmax backbone on images", "primal_plus", "softmax", clean, "eval", 0, 1.5),
        ("than the e-scores alone, on images", "primal", "primal_e", clean, "eval", 0, 11.9),
        ("comparable in accuracy to a ViT", "tost", "softmax", trained, "metrics", 3, -1.9),
        ("comparable in accuracy to XCiT", "tost", "xcit", trained, "metrics", 3, -2.6),
        ("maintains a ViT's accuracy", "tssa", "softmax", trained, "metrics", 3, None),
        ("than without the normalisation", "ablation_mlp", "ablation_no_norm_mlp", clean, "eval", 0, 6.0),
        ("with ISTA in place", "ablation_small_mlp", "ablation_small_ista", clean, "eval", 0, 3.8),
    ],
)
def test_other_mechanisms_on_images(
    claim: str,
    ours: str,
    base: str,
    rows: Callable[[float], Rows],
    table: str,
    within: float,
    printed: float | None,
    tmp_path: Path,
) -> None:
    """Two points on either side of 0, or of the bound, which lies as far below 0 as what counts as comparable."""
    words = ("holds", "does not hold") if within else ("better", "worse")
    for gain, verdict in zip((2 - within, -2 - within), words, strict=True):
        found = judge(runs(tmp_path / verdict, table, rows, **{base: 0, ours: gain}), claim)
        assert found["label"].tolist() == [ours]
        assert found["mean"].tolist() == pytest.approx([gain + 0.01])
        assert found["verdict"].tolist() == [verdict]
        assert found["paper_number"].dropna().tolist() == pytest.approx([] if printed is None else [printed])


def test_fewer_parameters_are_counted(tmp_path: Path) -> None:
    for folder, count, verdict in (("a", 90, "true"), ("b", 110, "false")):
        counts = {"tost": count, "xcit": 100}
        made: list[Any] = [
            run_with(tmp_path / folder, f"x/{name}", 0, {"metrics": trained(0)}, parameters=many)
            for name, many in counts.items()
        ]
        found = judge(made, "fewer parameters than XCiT")
        assert (found["mean"].tolist(), found["verdict"].tolist()) == ([count / 100], [verdict])
        assert found["paper_number"].tolist() == pytest.approx([22.6 / 24.9])


def test_best_and_last_are_not_compared_and_one_of_several_is_not_taken(tmp_path: Path) -> None:
    """Of two checkpoints the best counts; of two sizes of step in both models none does, and a line says so."""
    claim = "symmetric attention under PGD"
    pgd = {**dict(attacked("pgd")(0)[0]), "step_size": 0.1, "checkpoint": "best", "seed": 0}

    def made(folder: str, **rows: Rows) -> list[Run]:
        def raised(part: Rows, by: float) -> Rows:
            return [{**row, "top1": row["top1"] + by} for row in part]

        return [
            run_with(tmp_path / folder, f"x/{name}", seed, {"attacks": raised(part, level * seed)})
            for (name, part), level in zip(rows.items(), (1.0, 1.1), strict=True)
            for seed in SEEDS
        ]

    better = {**pgd, "top1": pgd["top1"] + 2}
    apart = judge(made("apart", symmetric=[pgd], rpc=[{**better, "checkpoint": "last"}]), claim)
    assert apart["verdict"].tolist() == ["not measured"]
    both = judge(made("both", symmetric=[pgd], rpc=[better, {**better, "checkpoint": "last", "top1": 99.0}]), claim)
    assert both["mean"].tolist() == pytest.approx([2.1])
    steps = [[one, {**one, "step_size": 0.2}] for one in (pgd, better)]
    with pytest.raises(
        RunError, match=r"x/rpc/0/attacks.csv: has pgd .* 2 times, which differ in step_share \(.* and .*\)"
    ):
        judge(made("steps", symmetric=steps[0], rpc=steps[1]), claim)
