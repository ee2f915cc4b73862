"""Caches stay within their bounds, and lose nothing that a living process uses."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from kattn_cli import cache
from kattn_cli.data.corpora.source import source_at
from kattn_cli.data.corpora.tokens import encode_source, vocabulary_of
from kattn_cli.data.reading.storage import default_root
from kattn_cli.data.vocabulary import build_vocabulary

DAY = 24 * 3600.0


def made(folder: Path, name: str, *, days: float = 0, size: int = 10) -> Path:
    path = folder / name
    path.write_bytes(b"x" * size)
    os.utime(path, (time.time() - days * DAY,) * 2)
    return path


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def test_what_nobody_used_for_long_goes_with_all_its_files(tmp_path: Path) -> None:
    for name in ("old.bin", "old.json", "old.lock"):
        made(tmp_path, name, days=31)
    made(tmp_path, "used.bin", days=31)
    made(tmp_path, "used.json", days=29)
    made(tmp_path, ".old.writing", days=31)
    made(tmp_path, "new.bin")
    cache.sweep(tmp_path)
    assert names(tmp_path) == {"used.bin", "used.json", ".old.writing", "new.bin"}


def test_beyond_the_size_what_was_not_used_for_longest_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache, "SIZE", 25)
    for days, name in enumerate(("a.bin", "b.bin", "c.bin", "d.bin")):
        made(tmp_path, name, days=days)
    cache.sweep(tmp_path)
    assert names(tmp_path) == {"a.bin", "b.bin"}
    made(tmp_path, "huge.bin", size=100, days=-1)
    cache.sweep(tmp_path)
    assert names(tmp_path) == {"huge.bin"}, "the last one stays, however large"


def test_a_use_counts_and_a_file_in_use_stays(tmp_path: Path) -> None:
    held, read = made(tmp_path, "held.bin", days=99), made(tmp_path, "read.bin", days=99)
    os.close(cache.hold(read))
    descriptor = cache.hold(held)
    os.utime(held, (0, 0))
    made(tmp_path, "new.bin")
    cache.sweep(tmp_path)
    assert names(tmp_path) == {"held.bin", "read.bin", "new.bin"}
    os.close(descriptor)
    cache.sweep(tmp_path)
    assert names(tmp_path) == {"read.bin", "new.bin"}


def test_a_file_that_another_process_uses_stays_until_that_ends(tmp_path: Path) -> None:
    path = made(tmp_path, "held.bin")
    code = f"from kattn_cli.cache import hold; hold({str(path)!r}); print(flush=True); input()"
    with subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        assert not cache.entries(tmp_path)[0].remove()
        process.kill()
        process.wait()
    assert cache.entries(tmp_path)[0].remove()
    assert not path.exists()


def test_tokens_are_swept_when_others_are_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path))
    source = []
    for number in range(3):
        text = tmp_path / f"{number}.txt"
        text.write_text("a b c\n" * (number + 5))
        source.append(source_at(str(text)))
    vocabulary = build_vocabulary("bytes", {}, [])
    first, second = (encode_source(one, vocabulary) for one in source[:2])
    built = vocabulary_of(source[0], "words", {})
    folder = default_root("tokens")
    assert len(cache.entries(folder)) == 3
    for path in folder.iterdir():
        os.utime(path, (0, 0))
    kept = first.tokens.tobytes()
    del second
    encode_source(source[2], vocabulary)
    assert len(cache.entries(folder)) == 2
    assert first.tokens.tobytes() == kept
    assert vocabulary_of(source[0], "words", {}) == built


def test_the_suite_leaves_the_users_caches_alone() -> None:
    from kattn_cli.commands.data.cache import caches

    for folder, _ in caches().values():
        assert not folder.is_relative_to(Path.home() / ".cache"), folder
