"""A table made again: its commands, its second start, what fails of it."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest
from command_line import kattn

from kattn_cli.commands.reproduce import reproduce as module
from kattn_cli.commands.reproduce.reproduce import Reproduction, commands, reproduce
from kattn_cli.errors import KattnError
from kattn_cli.papers.plan import Measurement, Plan, Size, plans
from kattn_cli.runs.find import all_runs


def settings(results: Path, *overrides: str, seeds: tuple[int, ...] = ()) -> Reproduction:
    return Reproduction(results, "small", seeds, overrides, jobs=1, device="cpu", quiet=True)


def tiny(recipe: Path) -> Plan:
    lines = [f"{recipe} train.epochs=1 --seed 3", f"{recipe} name=other train.epochs=1"]
    measure: list[str | Measurement] = ["eval", Measurement(run="eval --split validation", on=["nobody's"])]
    return Plan(title="tiny", small=Size(train=lines, measure=measure, data="digits", hours=0.1))


def test_commands_are_those_a_user_would_type() -> None:
    size = plans()["primal/table8"].small
    assert size
    told = [shlex.join(one) for one in commands(size, settings(Path("here"), "train.epochs=2", seeds=(0, 1)))]
    rest = "train.epochs=2 --seed 0 --seed 1 --resume --results here --device cpu --quiet"
    assert told[0] == f"train lra/small/listops/primal {rest}"
    own = "name=lra/small/listops/primal_e attention.scores=e"
    assert told[1] == f"train lra/small/listops/primal {own} {rest}"
    assert told[4] == (
        "eval lra/small/listops/primal lra/small/listops/primal_plus --results here --device cpu --quiet"
    )


def test_alike_trainings_are_one_command() -> None:
    size = plans()["rpc/table2"].small
    assert size
    assert next(iter(commands(size, settings(Path("here")))))[:4] == [
        "train",
        "fashion_mnist/symmetric",
        "fashion_mnist/rpc",
        "fashion_mnist/rpc_5",
    ]


def test_made_once(tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second start does nothing; a measurement that is struck from the list is done again, and no training."""
    results, plan = tmp_path / "results", tiny(tiny_recipe)
    reproduce({"own/tiny": plan}, settings(results))
    runs = {(run.label, run.seed): run.status for run in all_runs(results)}
    assert runs == {("tiny train.epochs=1", 3): "finished", ("other train.epochs=1", 0): "finished"}
    assert all((run.folder / "eval.csv").is_file() for run in all_runs(results))

    called: list[list[str]] = []
    monkeypatch.setattr(module, "_call", called.append)
    reproduce({"own/tiny": plan}, settings(results))
    assert called == []

    done = json.loads((results / module.DONE).read_text())
    (results / module.DONE).write_text(json.dumps(done[1:]))
    reproduce({"own/tiny": plan}, settings(results))
    assert [one[0] for one in called] == ["eval"]


def test_a_failure_is_told_and_the_others_go_on(
    tiny_recipe: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called: list[str] = []

    def call(arguments: list[str]) -> None:
        called.append(arguments[1])
        raise KattnError("no")

    monkeypatch.setattr(module, "_call", call)
    broken = Plan(title="broken", small=Size(train=["nobody/knows"], data="none", hours=1))
    with pytest.raises(KattnError) as told:
        reproduce({"own/broken": broken, "own/tiny": tiny(tiny_recipe)}, settings(tmp_path / "results"))
    assert str(told.value).splitlines() == [
        "2 of 2 could not be made; the same command goes on:",
        "own/broken: nobody/knows: there is no such recipe; kattn list recipes shows those that come with kattn",
        "own/tiny: no",
    ]
    assert called == [str(tiny_recipe)]


@pytest.mark.parametrize("content", ["", "[1]", '{"a": 1}', "[" * 100_000, "\udcff"])
def test_a_damaged_list_of_what_is_done_is_said(content: str, tmp_path: Path) -> None:
    (tmp_path / module.DONE).write_bytes(content.encode(errors="surrogateescape"))
    with pytest.raises(KattnError, match=r"^\S+: is no list of commands: it is damaged; remove it to measure every"):
        module._once(["--version"], settings(tmp_path))


def test_a_size_there_is_not_stops_all_before_any_work(tiny_recipe: Path, tmp_path: Path) -> None:
    both = {"own/tiny": tiny(tiny_recipe), "rpc/table7": plans()["rpc/table7"]}
    with pytest.raises(KattnError, match=r"^rpc/table7: has no small size; leave out --small$"):
        reproduce(both, settings(tmp_path / "results"))
    assert not (tmp_path / "results").exists()


def test_a_list_says_what_each_needs(capfd: pytest.CaptureFixture[str]) -> None:
    lines = kattn(capfd, "reproduce", "--list", "rpc").out.splitlines()
    at = lines.index("rpc/table2: Under attack")
    assert lines[at + 1 : at + 3] == [
        "  full     500 h of an H100      ImageNet-1K (data.root=…)",
        "  --small  3.5 h of two cores    Fashion-MNIST (31 MB, kattn data fetch fashion_mnist)",
    ]
    assert not any("not yet" in line for line in lines)
    assert not any("tost/" in line for line in lines)


def test_a_dry_run_prints_commands_alone(capfd: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    results = tmp_path / "results"
    said = kattn(capfd, "reproduce", "primal/table12", "--small", "--dry-run", "--results", results, "--device", "cpu")
    assert said.out.splitlines()[1:3] == [
        f"kattn train lra/small/listops/primal_plus --resume --results {results} --device cpu",
        "kattn train lra/small/listops/primal_plus name=lra/small/listops/primal_plus_independent "
        f"attention.layers.-1.projection=data-independent --resume --results {results} --device cpu",
    ]
    assert not results.exists()


def test_no_table_is_a_fault(capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "reproduce")
    assert (said.code, said.err) == (
        2,
        "No table was named. For example: kattn reproduce primal/table3 --small; --list shows them\n",
    )


def test_what_another_reproduction_has_done_meanwhile_stays_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    done = tmp_path / "reproduced.json"
    monkeypatch.setattr(module, "_call", lambda _: done.write_text('["plot other"]'))
    module._once(["plot", "--quiet"], settings(tmp_path))
    assert json.loads(done.read_text()) == ["plot other", "plot"]
