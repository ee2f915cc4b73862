"""Two processes that train together, for all tests of a session, since they take seconds to begin."""

from __future__ import annotations

import functools
import importlib.util
import inspect
import multiprocessing
import os
import pickle
import traceback
from collections.abc import Callable
from multiprocessing.connection import Connection
from types import ModuleType
from typing import Any

import torch
from torch.distributed import TCPStore

from kattn_cli.training.distributed import World, join

PATIENCE = 120.0
"""Seconds that a process waits for the other, and a test for both, on a machine however loaded."""


class Pair:
    """Two processes that meet as under ``torchrun``, at a store that this process keeps; they end when it does."""

    def __init__(self) -> None:
        self.store = TCPStore("127.0.0.1", 0, is_master=True, wait_for_workers=False)
        context = multiprocessing.get_context("spawn")
        self.pipes = []
        for rank in range(2):
            ours, theirs = context.Pipe()
            context.Process(target=_serve, args=(rank, self.store.port, theirs), daemon=True).start()
            theirs.close()
            self.pipes.append(ours)

    def run(self, case: Callable[..., Any], *args: Any) -> list[Any]:
        """What ``case(world, *args)``, a function of a file of tests, returns in each."""
        for pipe in self.pipes:
            pipe.send_bytes(pickle.dumps((inspect.getfile(case), case.__name__, args)))
        results = []
        for rank, pipe in enumerate(self.pipes):
            assert pipe.poll(PATIENCE), f"{case.__name__}: rank {rank} does not answer"
            result, fault = pickle.loads(pipe.recv_bytes())
            assert not fault, fault
            results.append(result)
        return results


@functools.cache
def two_processes() -> Pair:
    """The session's :class:`Pair`."""
    return Pair()


def _serve(rank: int, port: int, pipe: Connection) -> None:
    torch.set_num_threads(1)
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank)}
    os.environ |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port), "TORCHELASTIC_USE_AGENT_STORE": "True"}
    with join(torch.device("cpu"), PATIENCE) as world:
        while True:
            try:
                path, name, args = pickle.loads(pipe.recv_bytes())
            except (EOFError, ConnectionError):
                return
            pipe.send_bytes(pickle.dumps(_answer(path, name, world, args)))


def _answer(path: str, name: str, world: World, args: tuple[Any, ...]) -> tuple[Any, str]:
    try:
        return getattr(_cases(path), name)(world, *args), ""
    except Exception:
        return None, traceback.format_exc()


@functools.cache
def _cases(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("cases", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
