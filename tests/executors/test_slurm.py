"""Work through submitit: as processes of this machine, and as what sbatch is given."""

from __future__ import annotations

import pickle
import signal
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kattn_cli.errors import KattnError, Stopped
from kattn_cli.executors.executor import Outcome, Request
from kattn_cli.executors.slurm import Requeued, SlurmExecutor
from kattn_cli.training.interrupt import Interruption, catch_interruption

pytest.importorskip("submitit")


def program(folder: Path, name: str, text: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with SLURM's programs, which note what they are called with; sbatch keeps what it is given."""
    for name in ("srun", "scancel", "sacct"):
        program(tmp_path, name, f'echo {name} "$@" >> {tmp_path}/calls')
    program(tmp_path, "sbatch", f'cp "$1" {tmp_path}/given && echo Submitted batch job 12')
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    return tmp_path


def test_tasks_fail_alone_on_this_machine(tmp_path: Path) -> None:
    request = Request(jobs=2, folder=tmp_path / "jobs", settings={"cluster": "local"})
    events = SlurmExecutor(request).run(int, ["1", "x"], Interruption())
    found = dict(event for event in events if event)
    assert found[0] == Outcome(1)
    assert found[1].reason == "ValueError: invalid literal for int() with base 10: 'x'"


def test_what_sbatch_is_given(cluster: Path) -> None:
    settings = {"partition": "gpu", "time": 90, "mem_gb": 16}
    executor = SlurmExecutor(Request(jobs=2, cpus=4, gpus=1, folder=cluster / "jobs", settings=settings))
    interruption = Interruption()
    events = executor.run(int, ["1", "2", "3"], interruption)
    assert next(events) is None
    given = (cluster / "given").read_text()
    expected = "array=0-2%2 cpus-per-task=4 gpus-per-node=1 job-name=kattn mem=16GB partition=gpu time=90"
    for option in expected.split():
        assert f"#SBATCH --{option}\n" in given
    for number in range(3):
        (cluster / "jobs" / f"12_{number}_0_result.pkl").write_bytes(_pickled(Outcome(number)))
    assert [next(events) for _ in range(3)] == [(number, Outcome(number)) for number in range(3)]
    assert next(events, "over") == "over"


def _pickled(outcome: Outcome) -> bytes:
    return pickle.dumps(("success", outcome))


def test_jobs_are_asked_to_stop_before_they_are_ended(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kattn_cli.executors.slurm.STOPPING_SECONDS", 0.0)
    interruption = Interruption()
    events = SlurmExecutor(Request(jobs=2, folder=cluster / "jobs")).run(int, ["1", "2"], interruption)
    assert next(events) is None
    interruption.signal = signal.SIGINT
    assert list(events) in ([], [None])
    calls = [line for line in (cluster / "calls").read_text().splitlines() if line.startswith("scancel")]
    assert calls == [
        "scancel --quiet --state=PENDING 12_0 12_1",
        "scancel --quiet --signal=INT 12_0 12_1",
        "scancel 12_0",
        "scancel 12_1",
    ]


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"partitoin": "gpu"}, '--set partitoin: submitit has no such parameter; did you mean "partition"?'),
        ({"cluster": "debug"}, "--set cluster=debug: expected one of slurm, local"),
        (
            {"mem_gb": "much"},
            "--set: Parameter \"mem_gb\" expected type (<class 'int'>, <class 'float'>) (but value: \"much\")",
        ),
    ],
)
def test_settings_that_do_not_exist(cluster: Path, settings: dict[str, Any], told: str) -> None:
    with pytest.raises(KattnError) as caught:
        SlurmExecutor(Request(folder=cluster / "jobs", settings=settings))
    assert str(caught.value) == told


def test_where_there_is_no_slurm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(KattnError, match=r"^--on slurm: this machine has no srun; run it where sbatch works$"):
        SlurmExecutor(Request(folder=tmp_path / "jobs"))
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(KattnError, match=r"pip install 'kattn\[slurm\]'"):
        SlurmExecutor(Request(folder=tmp_path / "jobs"))


class Requeue(BaseException):
    """As submitit ends the process when it has requeued the job."""


@pytest.fixture
def inside_a_job(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The environment and the signals that submitit sets up before it calls the work."""

    def requeue(number: int, frame: object) -> None:
        raise Requeue

    monkeypatch.setenv("SUBMITIT_EXECUTOR", "local")
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGUSR2)}
    signal.signal(signal.SIGTERM, lambda number, frame: None)
    signal.signal(signal.SIGUSR2, requeue)
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


def training(state: list[str]) -> str:
    with catch_interruption() as interruption:
        signal.raise_signal(signal.SIGUSR2)
        deadline = time.monotonic() + 60
        while interruption.signal is None:
            assert time.monotonic() < deadline
    state.append("kept")
    raise Stopped("stopped", 128 + interruption.signal)


def loading(state: list[str]) -> str:
    signal.raise_signal(signal.SIGUSR2)
    state.append("not reached")
    return "done"


@pytest.mark.usefixtures("inside_a_job")
def test_a_preempted_training_keeps_its_state_before_it_is_requeued() -> None:
    state: list[str] = []
    with pytest.raises(Requeue):
        Requeued()(training, state)
    assert state == ["kept"]
    with pytest.raises(Requeue):
        Requeued()(loading, state)
    assert state == ["kept"]
    assert Requeued()(len, state) == Outcome(1)
    again = Requeued().checkpoint(len, state)
    assert again.function(*again.args) == Outcome(1)
