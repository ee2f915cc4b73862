"""Peak memory of a call, above what was held before it."""

from __future__ import annotations

import json
import resource
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from kattn_cli.errors import RunError

MIB = 2**20


def peak_memory(call: Callable[[], object], device: torch.device) -> float:
    """Return the peak MiB that ``call`` allocates on ``device`` beyond what is held when it starts.

    On a GPU by the allocator's statistics; on a CPU by replaying the profiler's record of allocations, which
    sees every tensor and the buffers inside torch's operators, but not those inside libraries.
    """
    if device.type == "cuda":
        torch.cuda.synchronize(device)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        call()
        torch.cuda.synchronize(device)
        return (torch.cuda.max_memory_allocated(device) - before) / MIB
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as record:
        call()
    try:
        with tempfile.TemporaryDirectory() as folder:
            trace = Path(folder) / "trace.json"
            record.export_chrome_trace(str(trace))
            events = json.loads(trace.read_text(encoding="utf-8"))["traceEvents"]
    except (OSError, ValueError) as error:
        reason = "the profiler's record is cut short" if isinstance(error, ValueError) else error.strerror or error
        raise RunError(f"the folder for temporary files cannot be written: {reason}; TMPDIR names another") from None
    allocations = sorted((event for event in events if event.get("name") == "[memory]"), key=lambda event: event["ts"])
    held = peak = 0
    for event in allocations:
        held += event["args"]["Bytes"]
        peak = max(peak, held)
    return peak / MIB


@contextmanager
def bounded_memory(device: torch.device, limit: int | None = None) -> Iterator[None]:
    """Let requests for more than ``limit`` bytes of a CPU (by default what is free) raise an error.

    Without it Linux grants any amount and later kills the process that uses it.
    """
    if device.type != "cpu":
        yield
        return
    try:
        held = _address_space_pages() * resource.getpagesize()
        limit = limit or int(0.9 * available_bytes())
    except (OSError, ValueError, StopIteration):
        yield
        return
    # of the address space, since allocators map memory long before they use it
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (held + limit, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def _address_space_pages() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0])


def available_bytes() -> int:
    """Return how much memory this machine has free.

    Raises:
        OSError, StopIteration: if it does not say.
    """
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))
