"""How work is shared among threads."""

from __future__ import annotations

import pytest
import torch

from kattn_cli.kernels.threads import shares


@pytest.mark.parametrize(("count", "threads"), [(1, 4), (7, 3), (8, 8), (100, 7)])
def test_shares_cover_everything_once(count: int, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    found = shares(count)
    assert len(found) == min(count, threads)
    assert [item for first, end in found for item in range(first, end)] == list(range(count))
    sizes = {end - first for first, end in found}
    assert max(sizes) - min(sizes) <= 1
