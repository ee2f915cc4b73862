"""Processes that train together: what they tell each other, how they meet, and what is left when one goes."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
import torch.distributed as dist
from two_processes import PATIENCE, Pair, two_processes

import kattn_cli
from kattn_cli.errors import TrainingError
from kattn_cli.training.distributed import World, join

CPU = torch.device("cpu")
ENVIRONMENT = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_USE_AGENT_STORE")
HERE = str(Path(kattn_cli.__file__).parents[1])
TORCHRUN = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2"]


@pytest.fixture(scope="module")
def pair() -> Pair:
    return two_processes()


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ENVIRONMENT:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PYTHONPATH", HERE)


def telling(world: World) -> dict[str, Any]:
    own = torch.tensor([world.rank + 1.0, 10.0])
    rows = torch.arange(3 * (world.rank + 1)).view(-1, 3)
    told = {
        "main": world.main,
        "sum": world.sum(own).tolist(),
        "own": own.tolist(),
        "any": [world.any(False), world.any(world.rank == 1), world.any(True)],
        "share": world.share({"rank": world.rank, "folder": Path("runs") / str(world.rank)}),
        "gather": world.gather(rows).tolist(),
        "gather bool": world.gather(rows > 1).tolist(),
        "gather from the second alone": world.gather(rows[: 2 * world.rank].double()).tolist(),
    }
    world.barrier()
    return told


def test_what_processes_tell_each_other(pair: Pair) -> None:
    first, second = pair.run(telling)
    assert (first.pop("main"), second.pop("main")) == (True, False)
    assert (first.pop("own"), second.pop("own")) == ([1, 10], [2, 10])
    assert first == second
    assert first == {
        "sum": [3, 20],
        "any": [False, True, True],
        "share": {"rank": 0, "folder": Path("runs/0")},
        "gather": [[0, 1, 2], [0, 1, 2], [3, 4, 5]],
        "gather bool": [[False, False, True], [False, False, True], [True, True, True]],
        "gather from the second alone": [[0, 1, 2], [3, 4, 5]],
    }


@pytest.mark.parametrize("started_by_torchrun", [False, True])
def test_alone_there_is_no_process_group(started_by_torchrun: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    if started_by_torchrun:
        for name, value in {"RANK": "0", "WORLD_SIZE": "1", "LOCAL_RANK": "0"}.items():
            monkeypatch.setenv(name, value)
    rows = torch.arange(3)
    with join(CPU) as world:
        assert world == World()
        assert world.main
        assert world.sum(rows) is rows
        assert world.gather(rows) is rows
        assert world.share("x") == "x"
        assert [world.any(False), world.any(True)] == [False, True]
        world.barrier()
        assert not dist.is_initialized()


TWO = {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": "1"}


@pytest.mark.parametrize(
    ("changes", "device", "fault"),
    [
        ({"RANK": None}, "cpu", "WORLD_SIZE is set and RANK is not; start several processes with: torchrun"),
        ({"MASTER_ADDR": None}, "cpu", "WORLD_SIZE is set and MASTER_ADDR is not"),
        ({"LOCAL_RANK": "two"}, "cpu", "must be whole numbers: .*'two'"),
        ({}, "mps", "mps cannot train in 2 processes; cpu and cuda can"),
        ({}, "cuda:1", "cuda:1 is one GPU, for 2 processes; with --device cuda each takes its own"),
        ({}, "cuda", "there is no GPU for process 2 of this machine, which has 1; give torchrun as many"),
        ({}, "cpu", r"rank 1 of 2 did not find the other processes at 127\.0\.0\.1:1 within 1 s: .+[^.]$"),
    ],
)
def test_what_cannot_be_joined(
    changes: dict[str, str | None], device: str, fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in {**TWO, **changes}.items():
        if value is not None:
            monkeypatch.setenv(name, value)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    with pytest.raises(TrainingError, match=fault) as caught, join(torch.device(device), timeout=1):
        pass
    assert "\n" not in str(caught.value)
    assert not dist.is_initialized()


@pytest.fixture
def _sigterm() -> Iterator[None]:
    before = signal.getsignal(signal.SIGTERM)
    yield
    signal.signal(signal.SIGTERM, before)


GLOO = "[/pytorch/third_party/gloo/gloo/transport/tcp/"


@pytest.mark.usefixtures("_sigterm")
@pytest.mark.parametrize(
    ("said", "reason"),
    [
        (
            GLOO + "pair.cc:534] Connection closed by peer [127.0.0.1]:3495",
            "Connection closed by peer [127.0.0.1]:3495",
        ),
        (
            GLOO + "pair.cc:545] Read error [127.0.0.1]:3495: Connection reset by peer. This is typically caused by …",
            "Read error [127.0.0.1]:3495: Connection reset by peer",
        ),
        (
            GLOO + "unbound_buffer.cc:78] Timed out waiting 600000ms for recv operation to complete",
            "Timed out waiting 600000ms for recv operation to complete",
        ),
    ],
)
def test_a_lost_peer_is_told_in_one_line(said: str, reason: str) -> None:
    with pytest.raises(TrainingError) as caught, World(0, 2).lost_peer():
        raise RuntimeError(said)
    assert str(caught.value) == (
        f"another process of this training is gone (rank 0 of 2 waits no longer: {reason}); "
        "its own message is above; go on with --resume"
    )
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_IGN


@pytest.mark.parametrize(
    ("world", "said"),
    [
        (World(), GLOO + "pair.cc:534] Connection closed by peer [127.0.0.1]:3495"),
        (World(0, 2), "DataLoader timed out after 5 seconds"),
        (World(0, 2), GLOO + "pair.cc:446] op.preamble.length <= op.nbytes. 80 vs 40"),
    ],
)
def test_other_errors_pass(world: World, said: str) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(RuntimeError) as caught, world.lost_peer():
        raise RuntimeError(said)
    assert str(caught.value) == said
    assert signal.getsignal(signal.SIGTERM) is before


BEGINNING = """\
import os, signal, sys, time
import torch
from kattn_cli.errors import TrainingError
from kattn_cli.training.distributed import join
from kattn_cli.training.interrupt import catch_interruption

torch.set_num_threads(1)
"""

DYING = """
from torch.nn.parallel import DistributedDataParallel

with join(torch.device("cpu"), timeout=60) as world:
    model = DistributedDataParallel(torch.nn.Linear(3, 3))
    try:
        with world.lost_peer(), catch_interruption():
            for step in range(1000):
                loss = model(torch.ones(2, 3)).sum()
                if world.rank == 1 and step == 3:
                    os.kill(os.getpid(), signal.SIGKILL)
                loss.backward()
    except TrainingError as error:
        time.sleep(1)  # in which torchrun's SIGTERM comes
        print(f"rank {world.rank}, step {step}: {error}", flush=True)
        sys.exit(2)
"""


def test_when_a_process_is_killed_the_other_says_so_and_ends(tmp_path: Path) -> None:
    script = tmp_path / "dying.py"
    script.write_text(BEGINNING + DYING, encoding="utf-8")
    done = subprocess.run([*TORCHRUN, str(script)], capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1, done.stderr
    said = "rank 0, step 3: another process of this training is gone (rank 0 of 2 waits no longer: "
    assert done.stdout.count(said) == 1, done.stdout + done.stderr
    assert "SIGKILL" in done.stderr


INTERRUPTED = """
with join(torch.device("cpu"), timeout=60) as world, catch_interruption() as interruption:
    for step in range(100_000):
        if step == 3:
            world.barrier()
            open(sys.argv[1] + str(world.rank), "w").close()
        if world.any(interruption.signal is not None):
            time.sleep(0.5)  # as if the state were being kept
            print(f"rank {world.rank} stops by {interruption.signal} after {step}", flush=True)
            break
        time.sleep(0.01)
assert not torch.distributed.is_initialized()
print(f"rank {world.rank} left", flush=True)
"""


def test_after_ctrl_c_all_stop_at_the_same_step(tmp_path: Path) -> None:
    """torchrun alone hears Ctrl-C and sends SIGINT to each process, once, at slightly different times."""
    script = tmp_path / "interrupted.py"
    script.write_text(BEGINNING + INTERRUPTED, encoding="utf-8")
    ready = [tmp_path / f"ready{rank}" for rank in range(2)]
    with subprocess.Popen(
        [*TORCHRUN, str(script), str(tmp_path / "ready")], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as launcher:
        until = time.monotonic() + PATIENCE
        while not all(path.exists() for path in ready) and time.monotonic() < until:
            time.sleep(0.05)
        launcher.send_signal(signal.SIGINT)
        out, err = launcher.communicate(timeout=PATIENCE)
    assert (out.count("rank 0 left"), out.count("rank 1 left")) == (1, 1), out + err
    stops = re.findall(r"rank (\d) stops by (\w+) after (\d+)", out)
    assert sorted(rank for rank, _, _ in stops) == ["0", "1"]
    assert len({step for _, _, step in stops}) == 1
    assert any(by == "2" for _, by, _ in stops)
