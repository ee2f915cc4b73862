"""``kattn data cache``: what was made of data and kept, and its removal."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from kattn_cli import cache
from kattn_cli.console import console, print_wide
from kattn_cli.data.reading.storage import default_root
from kattn_cli.errors import KattnError, did_you_mean
from kattn_cli.kernels.compile_c import cache_folder


def caches() -> dict[str, tuple[Path, str]]:
    """Return each cache with its folder and the pattern of its files; beside them may lie files that were not made."""
    return {
        "tokens": (default_root("tokens"), "*"),
        "kernels": (cache_folder(), "kernels-*.so"),
        "pixels": (default_root("pixels"), "*.npz"),
        "aan": (default_root("aan"), "new_aan_pairs*.npy"),
        "listops": (default_root("listops"), "v*.npz"),
        "pathfinder": (default_root("pathfinder"), "*.npy"),
    }


def show_caches(names: Sequence[str], *, clear: bool) -> None:
    """Print what each cache has, after removing all that no living process holds if ``clear``.

    Raises:
        KattnError: if there is no cache of a name.
    """
    known = caches()
    for name in names:
        if name not in known:
            raise KattnError(f"{name}: there is no such cache; there are {', '.join(known)}{did_you_mean(name, known)}")
    rows = []
    for name in names or known:
        folder, pattern = known[name]
        if clear:
            there = cache.entries(folder, pattern)
            gone = [entry for entry in there if entry.remove()]
            freed = _size(sum(entry.bytes_ for entry in gone))
            kept = f"; {len(there) - len(gone):,} are in use or cannot be removed" if len(gone) < len(there) else ""
            console.print(f"{name}: removed {len(gone):,} of {len(there):,}, {freed}{kept}")
        there = cache.entries(folder, pattern)
        used = time.strftime("%Y-%m-%d", time.localtime(there[-1].last_use)) if there else ""
        rows.append((name, f"{len(there):,}", _size(sum(entry.bytes_ for entry in there)), used, str(folder)))
    if not clear:
        print_wide(["cache", "entries", "size", "last used", "where"], rows)


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"
