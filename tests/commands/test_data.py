"""``kattn data`` as a user types it."""

from __future__ import annotations

import gzip
import hashlib
import os
from pathlib import Path

import pytest
import torchvision.datasets
from tiny_data import idx, mnist_arrays, write_mnist

from kattn_cli import cli
from kattn_cli.cache import hold
from kattn_cli.commands.data.cache import show_caches
from kattn_cli.commands.data.command import data_rows
from kattn_cli.console import console
from kattn_cli.data import DATASETS
from kattn_cli.data.sets.fashion_mnist import FashionMnist
from kattn_cli.data.sets.mnist import Mnist
from kattn_cli.errors import KattnError


@pytest.fixture(autouse=True)
def _nowhere_else(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "shared"))
    monkeypatch.setenv("COLUMNS", "500")
    monkeypatch.setattr(console, "quiet", False)
    monkeypatch.setattr(FashionMnist, "elsewhere", (tmp_path / "debian",))
    sums = {name: hashlib.md5(idx(array)).hexdigest() for name, array in mnist_arrays().items()}
    monkeypatch.setattr(Mnist, "md5", sums)
    monkeypatch.setattr(FashionMnist, "md5", sums)


def run_main(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], *arguments: str
) -> tuple[int, str, str]:
    """Run ``kattn data`` in this process; exit code, standard output, standard error."""
    monkeypatch.setattr("sys.argv", ["kattn", "data", *arguments])
    try:
        cli.main()
        code: int | str | None = 0
    except SystemExit as leaving:
        code = leaving.code
    captured = capfd.readouterr()
    return int(code or 0), captured.out, captured.err


@pytest.mark.parametrize("command", ["list", "check", "fetch"])
def test_help_shows_an_example(
    command: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run_main(monkeypatch, capfd, command, "--help")
    assert code == 0
    assert f"Example:  kattn data {command}" in out


def test_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    write_mnist(tmp_path / "debian", gzipped=True)
    code, out, _ = run_main(monkeypatch, capfd, "list")
    assert code == 0
    assert set(DATASETS) <= {line.partition(" ")[0] for line in out.splitlines()}
    rows = {name: f"{what} {where}" for name, what, where in data_rows()}
    assert rows["digits"] == "1,797 handwritten digits, bundled with scikit-learn; 10 classes, 8 × 8 × 1 here"
    assert rows["mnist"].endswith(f"10 classes, 28 × 28 × 1 not in {tmp_path / 'shared' / 'mnist'}")
    assert rows["fashion_mnist"].endswith(f"10 classes, 28 × 28 × 1 in {tmp_path / 'debian'}")
    assert rows["cifar100"].endswith(f"100 classes, 32 × 32 × 3 not in {tmp_path / 'shared' / 'cifar100'}")


def test_check(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    write_mnist(tmp_path / "here")
    code, out, err = run_main(monkeypatch, capfd, "check", "mnist", f"root={tmp_path / 'here'}")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"{tmp_path / 'here' / 'train-images-idx3-ubyte'}  ok  47,056 bytes",
        f"{tmp_path / 'here' / 'train-labels-idx1-ubyte'}  ok  68 bytes",
        f"{tmp_path / 'here' / 't10k-images-idx3-ubyte'}  ok  15,696 bytes",
        f"{tmp_path / 'here' / 't10k-labels-idx1-ubyte'}  ok  28 bytes",
        "mnist: train 60, test 20 images, 10 classes",
    ]
    assert run_main(monkeypatch, capfd, "check", "digits")[1].endswith(
        "digits: train 1,257, validation 185, test 355 images, 10 classes\n"
    )


def test_check_of_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_mnist(tmp_path / "here")
    (tmp_path / "here" / "t10k-images-idx3-ubyte").unlink()
    code, out, err = run_main(monkeypatch, capfd, "check", "mnist", f"data.root={tmp_path / 'here'}")
    assert code == 2
    assert [line.split()[1] for line in out.splitlines()] == ["ok", "ok", "missing", "ok"]
    assert err.startswith("mnist: there is no t10k-images-idx3-ubyte (or t10k-images-idx3-ubyte.gz) in ")
    assert len(err.splitlines()) == 1


def test_check_of_what_is_damaged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    arrays = write_mnist(tmp_path, gzipped=True)
    other = arrays["t10k-images-idx3-ubyte"] ^ 1
    (tmp_path / "t10k-images-idx3-ubyte.gz").write_bytes(gzip.compress(idx(other)))
    path = tmp_path / "train-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-9])
    code, out, err = run_main(monkeypatch, capfd, "check", "fashion_mnist", f"root={tmp_path}")
    assert code == 2
    assert [line.split("  ")[1] for line in out.splitlines()] == ["ok", "wrong checksum", "wrong checksum", "ok"]
    assert "is cut short or damaged (" in out.splitlines()[1]
    assert err.startswith("fashion_mnist: 2 files are damaged; remove what is and get it again: kattn data fetch ")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["minst"], 'minst: expected one of digits, mnist, fashion_mnist, cifar10, cifar100{}; did you mean "mnist"?'),
        (["mnist", "rooot=/x"], 'mnist: rooot unknown key; did you mean "root"?'),
        (["mnist", "image_sise=7"], 'mnist: image_sise unknown key; did you mean "image_size"?'),
        (["mnist", "root=5", "download=perhaps"], "mnist: root expected text, not 5"),
        (["mnist", "image_size=0"], "mnist: image_size must be at least 1, not 0"),
        (["mnist", "/data"], "mnist: /data expected key=value, for example root=/data"),
        (["mnist", "root=[1"], "mnist: root is not YAML: "),
    ],
)
@pytest.mark.parametrize("command", ["check", "fetch"])
def test_wrong_input(
    command: str,
    arguments: list[str],
    expected: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    code, out, err = run_main(monkeypatch, capfd, command, *arguments)
    assert (code, out) == (2, "")
    assert expected.format("".join(f", {name}" for name in list(DATASETS)[5:])) in err
    assert list(tmp_path.iterdir()) == []


def test_fetch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "mnist"
    monkeypatch.setattr(
        torchvision.datasets.MNIST, "download", lambda self: write_mnist(Path(self.raw_folder)) and None
    )
    code, out, _ = run_main(monkeypatch, capfd, "fetch", "mnist", f"root={root}")
    assert code == 0
    assert out.endswith("mnist: train 60, test 20 images, 10 classes\n")
    assert (root / "MNIST" / "raw" / "train-images-idx3-ubyte").is_file()


def test_fetch_of_what_is_there_downloads_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    write_mnist(tmp_path)
    monkeypatch.setattr(torchvision.datasets.MNIST, "download", lambda self: pytest.fail("downloaded"))
    assert run_main(monkeypatch, capfd, "fetch", "mnist", f"root={tmp_path}")[0] == 0
    assert run_main(monkeypatch, capfd, "fetch", "digits")[0] == 0


def test_fetch_without_a_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    def refuse(*arguments: object, **keys: object) -> None:
        raise OSError("Network is unreachable")

    monkeypatch.setattr("urllib.request.urlopen", refuse)
    for name in ("mnist", "fashion_mnist", "cifar10", "cifar100"):
        code, _, err = run_main(monkeypatch, capfd, "fetch", name, f"root={tmp_path / name}")
        assert code == 2
        assert err.startswith(f"{name}: cannot be downloaded into {tmp_path / name}: ")
        assert "Network is unreachable" in err
        assert len(err.splitlines()) == 1


def test_errors_are_ours() -> None:
    from kattn_cli.commands.data.command import check_data

    with pytest.raises(KattnError):
        check_data("mnist", ())


def test_caches_are_listed_and_cleared(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KATTN_DATA", str(tmp_path / "data"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "caches"))
    assert [line.split()[:3] for line in cache_lines()][:2] == [["tokens", "0", "0.0"], ["kernels", "0", "0.0"]]
    (tmp_path / "data" / "tokens").mkdir(parents=True)
    for name in ("a.bin", "a.json", "b.vocabulary.json"):
        (tmp_path / "data" / "tokens" / name).write_bytes(b"x" * 2**20)
    (tmp_path / "caches" / "kattn").mkdir(parents=True)
    for name in ("kernels-1.so", "of-the-user.txt"):
        (tmp_path / "caches" / "kattn" / name).touch()
    tokens, kernels, *_ = cache_lines()
    assert tokens.split()[:4] == ["tokens", "2", "3.0", "MiB"]
    assert tokens.endswith(str(tmp_path / "data" / "tokens"))
    assert kernels.split()[:2] == ["kernels", "1"]
    descriptor = hold(tmp_path / "data" / "tokens" / "a.bin")
    assert cache_lines("tokens", "--clear") == ["tokens: removed 1 of 2, 1.0 MiB; 1 are in use or cannot be removed"]
    os.close(descriptor)
    assert cache_lines("--clear")[:2] == ["tokens: removed 1 of 1, 2.0 MiB", "kernels: removed 1 of 1, 0.0 MiB"]
    assert [path.name for path in (tmp_path / "caches" / "kattn").iterdir()] == ["of-the-user.txt"]


def test_a_cache_that_there_is_not_is_a_fault() -> None:
    with pytest.raises(KattnError, match=r'^token: there is no such cache; there are .*; did you mean "tokens"\?$'):
        show_caches(["token"], clear=False)


def cache_lines(*words: str) -> list[str]:
    """What ``kattn data cache`` prints, without the head of its table."""
    with console.capture() as said:
        show_caches([word for word in words if word != "--clear"], clear="--clear" in words)
    lines = [line.rstrip() for line in said.get().splitlines() if line.strip()]
    return lines if "--clear" in words else lines[1:]
