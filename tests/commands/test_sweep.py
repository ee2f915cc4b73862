"""``kattn sweep``: no run lost, none twice, the same numbers wherever they are made."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from command_line import Said, kattn

import kattn_cli
from kattn_cli.commands.sweep.point import lock_of
from kattn_cli.commands.sweep.sweep import plan
from kattn_cli.commands.sweep.view import ranking
from kattn_cli.experiment.recipes import load_sweep
from kattn_cli.runs.csv_rows import read_rows
from kattn_cli.runs.run import Run

SWEPT = """\
name: swept
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2}
attention: {name: primal, s: 4, eta: 0.05}
train: {epochs: 2, batch_size: 256, lr: 5e-3}
sweep: {attention.eta: [0, 0.1], seed: [0, 1]}
"""
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(kattn_cli.__file__).parents[1]), "OMP_NUM_THREADS": "1"}
TIMES = ("images_per_second", "seconds")
HOLDER = """
import sys, time
from pathlib import Path
from kattn_cli.runs.lock import holding
lock, heard = map(Path, sys.argv[1:])
with holding(lock, ""):
    print("held", flush=True)
    while not heard.exists() or "process" not in heard.read_text():
        time.sleep(0.05)
"""


def recipe(folder: Path, text: str = SWEPT) -> Path:
    path = folder / "swept.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def sweep(capfd: pytest.CaptureFixture[str], path: Path, results: Path, *options: str | Path) -> Said:
    return kattn(capfd, "sweep", path, *options, "--results", results, "--device", "cpu", "--cpus", "1")


def numbers(results: Path) -> dict[tuple[str, str], tuple[str, str, list[dict[str, str]]]]:
    """By η and seed: the status, the best validation number, and all metrics but for times."""
    found = {}
    for row in read_rows(results / "swept" / "sweep.csv"):
        rows = read_rows(Path(row["run"]) / "metrics.csv") if row["run"] else []
        metrics = [{key: value for key, value in one.items() if key not in TIMES} for one in rows]
        found[row["attention.eta"], row["seed"]] = (row["status"], row["value"], metrics)
    return found


def runs(results: Path) -> list[Path]:
    return sorted(path.parent for path in (results / "swept").glob("*/manifest.json"))


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four points, swept in one go."""
    folder = tmp_path_factory.mktemp("undisturbed")
    start(folder, recipe(folder), "--jobs", "2", "--quiet").communicate(timeout=300)
    return folder / "results"


def start(folder: Path, path: Path, *options: str) -> subprocess.Popen[str]:
    """In a session of its own whose SIGINT is ignored, as of a command that a script put into the background."""
    command = [sys.executable, "-m", "kattn_cli", "sweep", str(path), *options, "--device", "cpu", "--cpus", "1"]
    return subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", *command],
        cwd=folder,
        env=ENVIRONMENT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )


def wait_for(table: Path, text: str, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 240
    while not (table.exists() and text in table.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_every_point_has_its_run(undisturbed: Path) -> None:
    rows = read_rows(undisturbed / "swept" / "sweep.csv")
    columns = ["point", "attention.eta", "seed", "status", "run", "reason", "seconds", "split", "metric", "value"]
    assert list(rows[0]) == columns
    assert [(row["point"], row["attention.eta"], row["seed"]) for row in rows] == [
        ("1", "0", "0"),
        ("2", "0", "1"),
        ("3", "0.1", "0"),
        ("4", "0.1", "1"),
    ]
    assert len(runs(undisturbed)) == 4
    for row in rows:
        run = Run(undisturbed.parent / row["run"])
        assert (run.seed, row["status"], row["split"], row["metric"]) == (
            int(row["seed"]),
            "finished",
            "validation",
            "top1",
        )
        assert float(row["value"]) == run.manifest["best_validation_top1"]
        assert run.label == f"swept attention.eta={row['attention.eta']}"


def test_started_again_trains_nothing(
    undisturbed: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(undisturbed.parent)
    before = {run: (run / "manifest.json").stat().st_mtime_ns for run in runs(undisturbed)}
    said = sweep(capfd, Path("swept.yaml"), Path("results"), "--jobs", "2")
    assert said.code == 0, said.err
    assert said.out.startswith("4 points: 4 finished\nresults/swept/sweep.csv, the best epoch of each run:\n")
    assert said.out.endswith("Next: kattn eval swept, and kattn report swept\n")
    assert {run: (run / "manifest.json").stat().st_mtime_ns for run in runs(undisturbed)} == before


def test_the_best_setting_comes_first(undisturbed: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(undisturbed.parent)
    (record,) = plan(["swept.yaml"], [], [], [], Path("results"))
    values: dict[str, list[float]] = {}
    for row in read_rows(Path("results/swept/sweep.csv")):
        values.setdefault(row["attention.eta"], []).append(float(row["value"]))
    best = max(values, key=lambda eta: sum(values[eta]))
    table = ranking(record)
    assert [str(column.header) for column in table.columns] == ["attention.eta", "validation top-1, %", "seeds"]
    first = [str(next(iter(column.cells))) for column in table.columns]
    first_value, second_value = values[best]
    half = 12.706204736432095 * abs(first_value - second_value) / 2  # Student's quantile of one degree of freedom
    assert first == [best, f"{(first_value + second_value) / 2:.1f} ± {half:.1f}", "2"]


@pytest.mark.parametrize("where", [("--on", "slurm", "--set", "cluster=local"), ("--on", "ray", "--address", "local")])
def test_the_same_numbers_elsewhere(
    where: tuple[str, ...],
    undisturbed: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pytest.importorskip("submitit" if "slurm" in where else "ray")
    monkeypatch.setenv("PYTHONPATH", ENVIRONMENT["PYTHONPATH"])
    said = sweep(capfd, recipe(tmp_path), tmp_path / "results", "--jobs", "2", "--over", "attention.eta=0.1", *where)
    assert said.code == 0, said.err
    monkeypatch.chdir(undisturbed.parent)
    expected = numbers(Path("results"))
    assert numbers(tmp_path / "results") == {key: expected[key] for key in (("0.1", "0"), ("0.1", "1"))}


def test_a_failed_point_is_told_and_the_rest_go_on(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, results = recipe(tmp_path), tmp_path / "results"
    said = sweep(capfd, path, results, "--over", "attention.eta=[1e300,0.1]", "--over", "seed=0")
    assert said.code == 2
    first, told, tail = said.err.splitlines()
    assert first == "1 of 2 points have no finished run:"
    assert told.startswith(f"  attention.eta=1.0e+300 seed=0: failed: {results}/swept/0: the loss is not a finite")
    assert tail.startswith("The same command tries them again: kattn sweep ")
    rows = read_rows(results / "swept" / "sweep.csv")
    assert [row["status"] for row in rows] == ["failed", "finished"]
    assert rows[0]["reason"] in told


def test_killed_with_all_its_processes_and_started_again(
    undisturbed: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path, results = recipe(tmp_path), tmp_path / "results"
    process = start(tmp_path, path, "--jobs", "2")
    wait_for(results / "swept" / "sweep.csv", "running", process)
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()
    said = sweep(capfd, path, results, "--jobs", "2")
    assert said.code == 0, said.err
    assert len(runs(results)) == 4
    found = numbers(results)
    monkeypatch.chdir(undisturbed.parent)
    assert found == numbers(Path("results"))


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_stopped_in_the_background(number: signal.Signals, tmp_path: Path) -> None:
    path = recipe(tmp_path, SWEPT.replace("epochs: 2", "epochs: 5000"))
    process = start(tmp_path, path, "--jobs", "2")
    table = tmp_path / "results" / "swept" / "sweep.csv"
    wait_for(table, "running", process)
    wait_for(tmp_path / "results" / "swept" / "0" / "metrics.csv", "\n1,", process)
    process.send_signal(number)
    _, err = process.communicate(timeout=240)
    assert process.returncode == 128 + number, err
    stopped, again = err.splitlines()
    assert stopped == "Stopped: 2 interrupted, 2 waiting; each run that was begun is kept at its last step."
    assert again == f"Go on with: kattn sweep {path} --jobs 2 --device cpu --cpus 1"
    assert [row["status"] for row in read_rows(table)] == ["interrupted", "interrupted", "waiting", "waiting"]
    assert {Run(run).status for run in runs(tmp_path / "results")} == {"interrupted"}


def test_a_point_in_the_hands_of_another_process_is_waited_for(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path, results = recipe(tmp_path, SWEPT.replace("[0, 0.1]", "[0]").replace("[0, 1]", "[0]")), tmp_path / "results"
    (point,) = load_sweep(path)
    lock = lock_of(results, point.recipe)
    lock.parent.mkdir(parents=True)
    command = [sys.executable, "-c", HOLDER, str(lock), str(results / "swept" / "sweep.csv")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        said = sweep(capfd, path, results)
    assert said.code == 0, said.err
    told = f"attention.eta=0 seed=0 is being trained by process {holder.pid} on host {socket.gethostname()}\n"
    assert f"waiting: {results}/swept: {told}" in said.out
    assert [row["status"] for row in read_rows(results / "swept" / "sweep.csv")] == ["finished"]
    assert len(runs(results)) == 1


def test_one_coordinator_at_a_time(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path, results = recipe(tmp_path), tmp_path / "results"
    lock = results / "swept" / ".sweep" / ".lock"
    lock.parent.mkdir(parents=True)
    command = [sys.executable, "-c", HOLDER, str(lock), str(tmp_path / "over")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as holder:
        assert holder.stdout
        assert holder.stdout.readline() == "held\n"
        said = sweep(capfd, path, results)
        (tmp_path / "over").write_text("process")
    assert said.code == 2
    assert said.err == f"{results}/swept: is being swept by process {holder.pid} on host {socket.gethostname()}\n"


def test_dry_run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    said = sweep(capfd, recipe(tmp_path), tmp_path / "results", "--dry-run")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0] == f"{tmp_path}/results/swept: 4 points; a dry run, nothing is trained"
    assert lines[1].split() == ["point", "seed", "attention.eta", "there", "is"]
    assert lines[4].split() == ["3", "0", "0.1", "nothing", "yet"]
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--set", "time=60"], "--set: is for SLURM, so it goes with --on slurm"),
        (["--address", "auto"], "--address: is a Ray cluster's, so it goes with --on ray"),
        (["--on", "slurm", "--set", "time"], "--set time: expected NAME=VALUE, for example partition=gpu or time=60"),
        (["swept.yaml"], "swept.yaml: has the name swept, as another recipe of this sweep has; give it another"),
    ],
)
def test_faults_of_the_command_line(
    options: list[str], told: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    said = sweep(capfd, recipe(tmp_path), Path("results"), *options)
    assert (said.code, said.err) == (2, f"{told}\n")
    assert kattn(capfd, "sweep", "train.epochs=1").err.startswith("No recipe was named. For example: kattn sweep ")
