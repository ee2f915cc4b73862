"""Several processes that train one model together, as ``torchrun`` starts them, or one that is alone.

What processes exchange besides gradients goes over gloo from the CPU, even where gradients go over nccl:
so nothing waits for a GPU, and gloo reports at once when a process is gone, where nccl would wait.
"""

from __future__ import annotations

import os
import re
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from kattn_cli.errors import KattnError, Stopped, TrainingError

TIMEOUT = 600.0
"""Seconds that a process waits for the others before it gives up."""

_TRANSPORT = re.compile(r"gloo|nccl|TCPStore|socket", re.IGNORECASE)
_GONE = re.compile(r"connection (closed|reset|refused|was)|broken pipe|timed?[ -]?out|ncclRemoteError", re.IGNORECASE)

T = TypeVar("T")


@dataclass(frozen=True)
class World:
    """The processes of a training, seen from one of them; ``World()`` is one alone, for which nothing here costs.

    Every process must call the same methods in the same order. They raise torch's ``RuntimeError`` where another
    process is gone; see :meth:`lost_peer`.
    """

    rank: int = 0
    size: int = 1
    local_rank: int = 0
    """Which of the processes on this machine."""

    @property
    def main(self) -> bool:
        """Whether this is the process that prints and writes files."""
        return self.rank == 0

    def sum(self, tensor: Tensor) -> Tensor:
        """Return the sum over all processes, each with a tensor of the same shape; alone, ``tensor`` itself."""
        if self.size == 1:
            return tensor
        total = tensor.detach().clone()
        dist.all_reduce(total)
        return total

    def any(self, flag: bool) -> bool:
        """Return whether ``flag`` is true in at least one process: the same answer for all."""
        if self.size == 1:
            return flag
        return bool(self.sum(torch.tensor(int(flag))))

    def share(self, value: T) -> T:
        """Return the first process's ``value``, pickled; what the others pass does not matter."""
        if self.size == 1:
            return value
        box = [value if self.main else None]
        dist.broadcast_object_list(box)
        shared = box[0]
        return shared  # type: ignore[return-value]

    def on_main(self, work: Callable[[], T]) -> T:
        """Return what ``work`` returns in the first process, pickled; a KattnError there is raised in all."""
        outcome: T | KattnError | None = None
        if self.main:
            try:
                outcome = work()
            except KattnError as error:
                outcome = error
        outcome = self.share(outcome)
        if isinstance(outcome, KattnError):
            raise outcome
        return outcome  # type: ignore[return-value]

    def gather(self, tensor: Tensor) -> Tensor:
        """Join ``(n_r, …)`` of each process to ``(Σ n_r, …)``, in the order of ranks, for all; without gradients."""
        if self.size == 1:
            return tensor
        tensor = tensor.detach()
        own = torch.zeros(self.size, dtype=torch.long)
        own[self.rank] = len(tensor)
        counts = self.sum(own).tolist()
        # all_gather takes tensors of one shape, so all are padded to the longest and cut again below.
        padded = tensor.new_zeros(max(counts), *tensor.shape[1:])
        padded[: len(tensor)] = tensor
        gathered = [torch.empty_like(padded) for _ in counts]
        dist.all_gather(gathered, padded)
        return torch.cat([rows[:count] for rows, count in zip(gathered, counts, strict=True)])

    def barrier(self) -> None:
        """Wait until every process is here."""
        self.any(False)

    @contextmanager
    def lost_peer(self) -> Iterator[None]:
        """Turn torch's error about a process that is gone, in a collective or in backward, into one line.

        From then on SIGTERM, which ``torchrun`` sends a moment later, is ignored, so that this process can say why
        and keep what it must; ``torchrun`` kills what has not ended after 30 s. So nothing that sets signals, such as
        :func:`~kattn_cli.training.interrupt.catch_interruption`, may be around it; inside it may.

        Raises:
            TrainingError: instead of torch's ``RuntimeError``. Other errors pass.
        """
        try:
            yield
        except RuntimeError as error:
            if self.size == 1 or not _is_lost_peer(error):
                raise
            if threading.current_thread() is threading.main_thread():
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
            raise TrainingError(
                f"another process of this training is gone (rank {self.rank} of {self.size} waits no longer: "
                f"{_reason(error)}); its own message is above; go on with --resume"
            ) from None


@contextmanager
def join(device: torch.device, timeout: float = TIMEOUT) -> Iterator[World]:
    """Join the processes that ``torchrun`` started while inside; yields the world, which may be one process alone.

    With ``cuda``, the GPU of this process's local rank becomes the current one, which ``torch.device("cuda")`` means.

    Args:
        device: ``cpu`` or ``cuda``; which GPU, only for a process that is alone.
        timeout: seconds that each wait for the others may take, here and in every collective.

    Raises:
        TrainingError: if the environment is not ``torchrun``'s, the device cannot be shared out, or the processes do
            not find each other.
    """
    world = _world()
    if world.size == 1:
        yield world
        return
    _take_device(device, world)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        dist.init_process_group(backend, timeout=timedelta(seconds=timeout))
    except RuntimeError as error:
        where = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        raise TrainingError(
            f"rank {world.rank} of {world.size} did not find the other processes at {where} within {timeout:g} s: "
            f"{_reason(error)}"
        ) from None
    try:
        yield world
    except Stopped:
        raise
    except BaseException:
        if device.type == "cuda" and dist.group.WORLD is not None:
            dist.group.WORLD.abort()  # otherwise leaving would wait for what the others no longer send
        raise
    finally:
        dist.destroy_process_group()


def _world() -> World:
    names = ("RANK", "WORLD_SIZE", "LOCAL_RANK")
    if names[1] not in os.environ:
        return World()
    try:
        rank, size, local_rank = (int(os.environ[name]) for name in names)
        if size > 1:
            int(os.environ["MASTER_PORT"]), os.environ["MASTER_ADDR"]
    except KeyError as missing:
        raise TrainingError(
            f"WORLD_SIZE is set and {missing.args[0]} is not; start several processes with: "
            "torchrun --nproc-per-node 2 -m kattn_cli train …"
        ) from None
    except ValueError as error:
        raise TrainingError(f"RANK, WORLD_SIZE, LOCAL_RANK and MASTER_PORT must be whole numbers: {error}") from None
    return World(rank, size, local_rank)


def _take_device(device: torch.device, world: World) -> None:
    """Make the GPU of this process's local rank the current one, or refuse a device that cannot be shared out."""
    if device.type == "cpu":
        return
    if device.type != "cuda":
        raise TrainingError(f"{device} cannot train in {world.size} processes; cpu and cuda can")
    if device.index is not None:
        raise TrainingError(f"{device} is one GPU, for {world.size} processes; with --device cuda each takes its own")
    if world.local_rank >= torch.cuda.device_count():
        raise TrainingError(
            f"there is no GPU for process {world.local_rank + 1} of this machine, which has "
            f"{torch.cuda.device_count()}; give torchrun as many with --nproc-per-node"
        )
    torch.cuda.set_device(world.local_rank)


def _is_lost_peer(error: RuntimeError) -> bool:
    """Return whether torch's error means that another process is gone: its text names a transport and a loss."""
    text = str(error)
    return bool(_TRANSPORT.search(text) and _GONE.search(text))


def _reason(error: RuntimeError) -> str:
    """Return the first sentence of torch's text, without the place in its source."""
    text = re.sub(r"^\[[^\]]*\]\s*", "", str(error).strip())
    return re.split(r"\.\s|\n", text, maxsplit=1)[0].rstrip(".")
