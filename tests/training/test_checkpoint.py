"""Checkpoints: what is refused, and in which words."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import nn

from kattn_cli.errors import CheckpointError
from kattn_cli.runs.weights import fingerprint, weights_path
from kattn_cli.training.checkpoint import (
    STATE,
    has_state,
    load_state,
    load_weights,
    save_state,
    save_weights,
)

RECIPE = {"attention": {"name": "rpc", "iterations": 4}, "model": {"dim": 8}}


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    path = weights_path(tmp_path, "last")
    torch.manual_seed(0)
    save_weights(path, nn.Linear(3, 2), RECIPE, step=7)
    return path


def test_round_trip(saved: Path) -> None:
    model = nn.Linear(3, 2)
    loaded = load_weights(saved, model, RECIPE)
    assert (loaded.step, loaded.fingerprint) == (7, fingerprint(saved))
    torch.manual_seed(0)
    assert torch.equal(model.weight, nn.Linear(3, 2).weight)
    assert [path.name for path in saved.parent.iterdir()] == ["last.safetensors"]


def refused(path: Path, model: nn.Module, recipe: dict[str, object] | None = None) -> str:
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    with pytest.raises(CheckpointError) as caught:
        load_weights(path, model, recipe or RECIPE)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_truncated(saved: Path) -> None:
    whole = saved.read_bytes()
    for length in (len(whole) - 1, len(whole) - 20):
        saved.write_bytes(whole[:length])
        assert refused(saved, nn.Linear(3, 2)).endswith(f"is cut short ({length:,} of {len(whole):,} bytes)")
    for length in (0, 5, 40):
        saved.write_bytes(whole[:length])
        assert "is not a safetensors file" in refused(saved, nn.Linear(3, 2))


def test_missing_file(tmp_path: Path) -> None:
    assert refused(tmp_path / "none", nn.Linear(3, 2)).endswith("none: is missing")


def test_another_shape(saved: Path) -> None:
    assert "does not fit the recipe: weight is (2, 3), the model's is (2, 4)" in refused(saved, nn.Linear(4, 2))


def test_missing_key(saved: Path) -> None:
    tensors = load_file(saved)
    del tensors["bias"]
    save_file(tensors, saved)
    assert "does not fit the recipe: bias is missing" in refused(saved, nn.Linear(3, 2))


def test_key_that_is_too_many(saved: Path) -> None:
    assert "does not fit the recipe: bias is not in the model" in refused(saved, nn.Linear(3, 2, bias=False))


def test_of_many_keys_two_are_named(saved: Path) -> None:
    two, four = (nn.Sequential(*(nn.Linear(3, 2) for _ in range(count))) for count in (1, 2))
    assert "recipe: 0.weight, 0.bias are missing" in refused(saved, two)
    assert "recipe: 0.weight, 0.bias and 2 more are missing" in refused(saved, four)


def test_another_recipe(saved: Path) -> None:
    other = {**RECIPE, "attention": {"name": "rpc", "iterations": 6}}
    assert refused(saved, nn.Linear(3, 2), other).endswith(
        "was made by another recipe: attention.iterations was 4 and is 6"
    )


def test_of_many_changes_three_are_named(tmp_path: Path) -> None:
    made: dict[str, object] = {"attention": dict.fromkeys("abcd", 1)}
    asked: dict[str, object] = {"attention": dict.fromkeys("abcd", 2)}
    save_weights(weights_path(tmp_path, "last"), nn.Linear(3, 2).state_dict(), made, step=1)
    said = refused(weights_path(tmp_path, "last"), nn.Linear(3, 2), asked)
    assert said.endswith(": attention.a was 1 and is 2, attention.b was 1 and is 2, attention.c was 1 and is 2")


def test_an_option_of_a_later_version(saved: Path) -> None:
    """The file does not know it: its default changes nothing. An exception for a layer it does not know does."""
    later = {**RECIPE, "attention": {**RECIPE["attention"], "textbook": False}}  # type: ignore[dict-item]
    load_weights(saved, nn.Linear(3, 2), later)
    exception = {**RECIPE, "attention": {**RECIPE["attention"], "layers": {"0": {"name": "tssa"}}}}  # type: ignore[dict-item]
    assert "attention.layers.0.name was None and is tssa" in refused(saved, nn.Linear(3, 2), exception)


def test_state(tmp_path: Path) -> None:
    save_state(tmp_path, {"step": 3, "weights": torch.ones(2)})
    assert load_state(tmp_path)["step"] == 3
    path = tmp_path / "checkpoints" / STATE
    path.write_bytes(path.read_bytes()[:-30])
    with pytest.raises(CheckpointError, match=r"resume\.pt: is cut short or damaged \(1,\d+ bytes, BadZipFile\)$"):
        load_state(tmp_path)
    with pytest.raises(CheckpointError, match="has no state to resume from"):
        load_state(tmp_path / "elsewhere")
    assert has_state(tmp_path)
    assert not has_state(tmp_path / "elsewhere")


def test_no_code_of_a_state_is_run(tmp_path: Path) -> None:
    """A pickle may name any function: one that would make a folder is refused, not called."""

    class Payload:
        def __reduce__(self) -> tuple[object, ...]:
            return os.mkdir, (str(tmp_path / "made"),)

    save_state(tmp_path, {"step": 3})
    torch.save({"step": 4, "model": Payload()}, tmp_path / "checkpoints" / STATE)
    with pytest.raises(CheckpointError, match=r"resume\.pt: is cut short or damaged .*UnpicklingError"):
        load_state(tmp_path)
    assert not (tmp_path / "made").exists()


def test_a_state_of_an_unknown_step_is_used_too(tmp_path: Path) -> None:
    for progress in (None, {"step": 7}):
        save_state(tmp_path, {"progress": progress})
    (tmp_path / "checkpoints" / STATE).write_bytes(b"half")
    notes: list[str] = []
    assert load_state(tmp_path, notes.append) == {"progress": None}
    assert notes[0].endswith("; using the one before it.")


def filled(step: int, size: int = 40) -> nn.Linear:
    """A layer whose every number is ``step``."""
    layer = nn.Linear(size, size)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.fill_(step)
    return layer


def save(run: Path, step: int) -> None:
    layer = filled(step)
    save_weights(weights_path(run, "last"), layer.state_dict(), RECIPE, step=step)
    save_state(run, {"model": layer.state_dict(), "progress": {"step": step}})


def loaded(run: Path) -> tuple[list[int], list[str]]:
    """The steps of the state that loads and of the weights before the last, and what was said."""
    notes: list[str] = []
    state = load_state(run, notes.append)
    layer = filled(0)
    weights = load_weights(weights_path(run, "last.previous"), layer, RECIPE)
    steps = [state["progress"]["step"], weights.step]
    for tensors, step in zip((state["model"], layer.state_dict()), steps, strict=True):
        assert all(torch.all(tensor == step) for tensor in tensors.values())
    return steps, notes


FILES = (STATE, "last.safetensors")


def test_the_one_before_is_used(tmp_path: Path) -> None:
    for step in (3000, 4000, 5000):
        save(tmp_path, step)
    folder = tmp_path / "checkpoints"
    assert {path.name for path in folder.iterdir()} == {*FILES, "resume.previous.pt", "last.previous.safetensors"}
    assert loaded(tmp_path) == ([5000, 4000], [])
    sizes = [(folder / name).stat().st_size for name in FILES]
    for name, size in zip(FILES, sizes, strict=True):
        os.truncate(folder / name, size - 700)
    until = "using the one before it, step 4,000."
    how = f"is cut short or damaged ({sizes[0] - 700:,} bytes, BadZipFile)"
    others = "; others can be asked for: --checkpoint last.previous (step 4,000)"
    assert loaded(tmp_path) == ([4000, 4000], [f"{tmp_path}: the last checkpoint {how}; {until}"])
    error = refused(weights_path(tmp_path, "last"), filled(0))
    assert error.endswith(f"last.safetensors: is cut short ({sizes[1] - 700:,} of {sizes[1]:,} bytes){others}")
    for name in FILES:
        (folder / name).unlink()
    assert loaded(tmp_path) == ([4000, 4000], [f"{tmp_path}: the last checkpoint is missing; {until}"])
    assert has_state(tmp_path)
    assert refused(weights_path(tmp_path, "last"), filled(0)).endswith(f"last.safetensors: is missing{others}")


def test_a_damaged_one_never_replaces_the_one_before(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    for name in FILES:
        (tmp_path / "checkpoints" / name).write_bytes(b"half")
    save(tmp_path, 3)
    for name in FILES:
        (tmp_path / "checkpoints" / name).write_bytes(b"half")
    assert loaded(tmp_path)[0] == [1, 1]


def test_neither_is_usable(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    for path in (tmp_path / "checkpoints").iterdir():
        path.write_bytes(b"")
    with pytest.raises(CheckpointError) as caught:
        load_state(tmp_path)
    path = tmp_path / "checkpoints" / STATE
    how = "is cut short or damaged (0 bytes, BadZipFile)"
    assert str(caught.value) == f"{path}: {how}; the one before it, resume.previous.pt, {how}"
    error = refused(weights_path(tmp_path, "last"), filled(0))
    assert "last.safetensors: is not a safetensors file" in error
    assert "asked for" not in error


def test_an_epoch_whose_weights_are_damaged(tmp_path: Path) -> None:
    """Is none that could be asked for: those that were kept are all measured."""
    path = weights_path(tmp_path, "epoch-0003")
    save_weights(path, filled(1), RECIPE)
    path.write_bytes(b"half")
    assert refused(path, filled(0)).endswith("; without that file the epoch is left out")


def test_the_fingerprint_is_of_the_bytes_that_were_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And the step, too, though other weights take the name meanwhile."""
    path = weights_path(tmp_path, "last")
    save_weights(path, filled(1), RECIPE, step=1)
    before = fingerprint(path)
    read = Path.read_bytes

    def overtaken(self: Path) -> bytes:
        content = read(self)
        save_weights(path, filled(2), RECIPE, step=2)
        return content

    monkeypatch.setattr(Path, "read_bytes", overtaken)
    layer = filled(0)
    loaded = load_weights(path, layer, RECIPE)
    assert (loaded.step, loaded.fingerprint, int(layer.weight[0, 0])) == (1, before, 1)
    assert fingerprint(path) != before


def test_another_recipe_is_no_damage(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    error = refused(weights_path(tmp_path, "last"), filled(0), {**RECIPE, "model": {"dim": 9}})
    assert error.endswith("another recipe: model.dim was 8 and is 9")


def test_sizes_in_megabytes(tmp_path: Path) -> None:
    for step in (1, 4000):
        save_weights(weights_path(tmp_path, "best"), filled(step, 800), RECIPE, step=step)
    path = weights_path(tmp_path, "best")
    os.truncate(path, 2_000_000)
    assert f"{path}: is cut short (2.0 MB of 2.6 MB); " in refused(path, filled(0, 800))


def flipped(path: Path, bits: Iterable[int]) -> Iterator[None]:
    """``path`` with one bit of it changed, for each of ``bits`` (or as many as it has)."""
    whole = path.read_bytes()
    for bit in bits:
        if bit >= 8 * len(whole):
            break
        damaged = bytearray(whole)
        damaged[bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        yield


SOME_BITS = range(0, 10**9, 43)
"""Every 43rd: all of them were tried once and take minutes."""


def test_flipped_bits_of_a_state(tmp_path: Path) -> None:
    """Are noticed, or lie where they change nothing, as in the padding."""
    save_state(tmp_path, {"model": filled(2, 4).state_dict()})
    noticed = []
    for _ in flipped(tmp_path / "checkpoints" / STATE, SOME_BITS):
        try:
            state = load_state(tmp_path)
        except CheckpointError:
            noticed.append(True)
        else:
            noticed.append(False)
            assert [torch.all(tensor == 2) for tensor in state["model"].values()] == [True, True]
    assert sum(noticed) > 0.5 * len(noticed)


def test_a_record_that_claims_to_be_a_folder(tmp_path: Path) -> None:
    """torch reads nothing of it, and says nothing."""
    save_state(tmp_path, {"model": filled(2).state_dict()})
    path = tmp_path / "checkpoints" / STATE
    data = bytearray(path.read_bytes())
    data[data.rindex(b"archive/data/0") - 8] ^= 0x10
    path.write_bytes(data)
    with pytest.raises(CheckpointError, match=r"is damaged \([\d,]+ bytes, in archive/data/0\)"):
        load_state(tmp_path)


def test_flipped_bits_of_weights(tmp_path: Path) -> None:
    path = weights_path(tmp_path, "last")
    save_weights(path, filled(2, 4), RECIPE)
    noticed = []
    for _ in flipped(path, SOME_BITS):
        layer = filled(0, 4)
        try:
            load_weights(path, layer, RECIPE)
        except CheckpointError:
            noticed.append(True)
        else:
            noticed.append(False)
            assert [torch.all(tensor == 2) for tensor in layer.parameters()] == [True, True]
    assert sum(noticed) > 0.95 * len(noticed)


def test_weights_without_a_checksum(saved: Path) -> None:
    """As an earlier version wrote them."""
    save_file(load_file(saved), saved, metadata={"step": "5"})
    assert load_weights(saved, nn.Linear(3, 2), RECIPE).metadata == {"step": "5"}
    save_file(load_file(saved), saved, metadata={"recipe": "{"})
    assert "last.safetensors: is damaged (Expecting property name" in refused(saved, nn.Linear(3, 2))


def test_types_and_shapes_of_all_kinds(tmp_path: Path) -> None:
    model = nn.Module()
    kinds = [torch.float16, torch.bfloat16, torch.float64, torch.int64, torch.uint8, torch.bool]
    for k, kind in enumerate(kinds):
        model.register_buffer(f"b{k}", torch.ones(2, 3).to(kind))
    model.register_buffer("scalar", torch.tensor(3.0))
    model.register_buffer("empty", torch.zeros(0, 4))
    model.register_buffer("transposed", torch.arange(6.0).reshape(2, 3).T)
    path = weights_path(tmp_path, "last")
    save_weights(path, model, RECIPE)
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    load_weights(path, model, RECIPE)
    assert all(torch.equal(before[name], tensor) for name, tensor in model.state_dict().items())


def test_others_may_read_what_the_folder_lets_them(saved: Path) -> None:
    assert saved.stat().st_mode & 0o777 == saved.parent.stat().st_mode & 0o666


def test_a_full_disk_keeps_both(tmp_path: Path) -> None:
    for step in (1, 2):
        save(tmp_path, step)
    folder = tmp_path / "checkpoints"
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    layer = filled(3, 200)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(CheckpointError) as of_weights:
            save_weights(weights_path(tmp_path, "last"), layer, RECIPE, step=3)
        with pytest.raises(CheckpointError) as of_state:
            save_state(tmp_path, {"model": layer.state_dict(), "progress": {"step": 3}})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert str(of_weights.value) == f"{folder / 'last.safetensors'}: cannot be written: File too large"
    assert str(of_state.value) == f"{folder / STATE}: cannot be written: File too large"
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
    assert loaded(tmp_path) == ([2, 1], [])


@pytest.mark.parametrize(
    "text",
    [
        "Error while serializing: I/O error: No space left on device (os error 28)",
        'Error while serializing: IoError(Os { code: 28, kind: StorageFull, message: "No space left on device" })',
    ],
)
def test_words_of_safetensors(text: str, saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object, **__: object) -> None:
        raise SafetensorError(text)

    monkeypatch.setattr("kattn_cli.training.checkpoint.save_file", fail)
    with pytest.raises(CheckpointError) as caught:
        save_weights(saved, nn.Linear(3, 2), RECIPE)
    assert str(caught.value) == f"{saved}: cannot be written: No space left on device"


def test_a_number_of_numpy_in_a_state_of_an_earlier_version(tmp_path: Path) -> None:
    path = tmp_path / "checkpoints" / STATE
    path.parent.mkdir()
    torch.save({"progress": {"step": 3, "best_loss": np.float64(0.25)}}, path)
    assert load_state(tmp_path) == {"progress": {"step": 3, "best_loss": 0.25}}


@pytest.mark.parametrize(
    ("state", "where"),
    [
        ({"hook": test_state}, "state.hook: a function"),
        ({"progress": {"sums": [0.5, np.float64(0.5)]}}, "state.progress.sums[1]: a float64"),
        ({"generator": np.zeros(2)}, "state.generator: a ndarray"),
    ],
)
def test_a_state_that_could_not_be_read_again_is_not_written(state: dict[str, Any], where: str, tmp_path: Path) -> None:
    with pytest.raises(TypeError) as caught:
        save_state(tmp_path, state)
    assert str(caught.value) == f"{where} cannot be read again from a checkpoint"
    assert not (tmp_path / "checkpoints").exists()


KILLED = """
import os, random, signal, sys, time
from pathlib import Path
import torch
from kattn_cli.runs.csv_rows import append_rows, read_rows
from kattn_cli.training.checkpoint import load_state, load_weights, save_state, save_weights, weights_path
torch.set_num_threads(1)
run, recipe = Path(sys.argv[1]), {}
path, table = weights_path(run, "last"), run / "metrics.csv"

def train(step):
    os.fsync = lambda descriptor: None
    while True:
        step += 1
        model = {"w": torch.full((300, 300), float(step))}
        append_rows(table, [{"step": step, "split": split, "top1": step / 3} for split in ("train", "validation")])
        save_weights(path, model, recipe, step=step)
        save_state(run, {"model": model, "progress": {"step": step}})

def fail(note):
    raise SystemExit(note)

random.seed(0)
step = 0
for attempt in range(11):
    child = os.fork()
    if not child:
        train(step)
    began = time.monotonic()
    while not (run / "checkpoints" / "resume.pt").exists() and time.monotonic() < began + 20:
        time.sleep(0.01)
    time.sleep(random.uniform(0.02, 0.12))
    os.kill(child, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    before = step
    step = load_state(run, fail)["progress"]["step"]
    weights = torch.nn.ParameterDict({"w": torch.zeros(300, 300)})
    at = load_weights(path, weights, recipe).step
    assert at in (step, step + 1), (at, step)
    assert torch.all(weights["w"] == at)
    rows = read_rows(table)
    last = int(rows[-1]["step"])
    assert last in (at, at + 1), (last, at)
    assert all(float(row["top1"]) == int(row["step"]) / 3 for row in rows)
    print(before, step, at, last, len(rows), sorted(os.listdir(run / "checkpoints")))
"""


def test_killed_at_any_moment(tmp_path: Path) -> None:
    """Whatever was being written, the state, weights and rows there are can be used, and none is lost."""
    command = [sys.executable, "-c", KILLED, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert len(lines) == 11
    assert int(lines[-1].split()[1]) >= 3
    assert len(list(tmp_path.glob("checkpoints/.*"))) <= 2


def test_write_that_fails_keeps_the_old_file(saved: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = saved.read_bytes()

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.replace", fail)
    with pytest.raises(CheckpointError, match="cannot be written: No space left on device"):
        save_weights(saved, nn.Linear(3, 2), RECIPE)
    assert saved.read_bytes() == before
    assert [path.name for path in saved.parent.iterdir()] == ["last.safetensors"]
