"""Tables that a hand or a disk has damaged: one line with file, row, column and what was expected, whoever reads them.

Every table of some reference runs is damaged in every way, at a place drawn anew each time; the seed is printed.
"""

from __future__ import annotations

import csv
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from command_line import kattn
from matplotlib.figure import Figure

from kattn_cli.commands.report import flops
from kattn_cli.commands.report import run as report_run
from kattn_cli.errors import RunError
from kattn_cli.runs.columns import NUMBERS, TABLES, WHOLE
from kattn_cli.runs.cost_table import read_cost_table
from kattn_cli.runs.csv_rows import read_frame, read_rows

REFERENCE = Path(__file__).parents[2] / "results" / "reference"
RUNS = (
    "quickstart/softmax/0", "audit/tost/0", "language/shakespeare/symmetric/0", "control/small/hopper/softmax/0",
    "segmentation/canvases/rpc/0", "fashion_mnist/rpc_6/0", "sentences/moe/small_softmax/0",
)  # fmt: skip
COSTS = (
    "complexity/figure6.csv", "complexity/models-rpc.csv", "complexity/decoding-cpu.csv", "benchmark/cpu.csv",
    "kernel_pca/digits.csv",
)  # fmt: skip
Cells = list[list[str]]


def with_cell(text: str, columns: frozenset[str] = WHOLE | NUMBERS) -> Callable[[random.Random, Cells], bytes]:
    """Write ``text`` into a cell of one of these columns; a table without any is damaged otherwise."""

    def damage(draw: random.Random, cells: Cells) -> bytes:
        places = [k for k, one in enumerate(cells[0]) if one in columns]
        if not places:
            return not_text(draw, cells)
        cells[draw.randrange(1, len(cells))][draw.choice(places)] = text
        return joined(cells)

    return damage


def joined(cells: Cells) -> bytes:
    return "".join(f"{','.join(row)}\r\n" for row in cells).encode()


def renamed(draw: random.Random, cells: Cells) -> bytes:
    place = draw.randrange(len(cells[0]))
    cells[0][place] += "_"
    return joined(cells)


def header_twice(draw: random.Random, cells: Cells) -> bytes:
    cells[0][draw.randrange(1, len(cells[0]))] = cells[0][0]
    return joined(cells)


def one_more(draw: random.Random, cells: Cells) -> bytes:
    cells[draw.randrange(1, len(cells))].append("1")
    return joined(cells)


def one_less(draw: random.Random, cells: Cells) -> bytes:
    cells.append([*cells[-1]])  # for the last row would be taken for one that was cut off
    cells[draw.randrange(1, len(cells) - 1)].pop()
    return joined(cells)


def not_text(draw: random.Random, cells: Cells) -> bytes:
    data = joined(cells)
    place = draw.randrange(len(data) - 2)
    return data[:place] + b"\xff\xfe" + data[place:]


def cut(draw: random.Random, cells: Cells) -> bytes:
    data = joined(cells)
    return data[: draw.randrange(len(data))]


REFUSED: dict[str, Callable[[random.Random, Cells], bytes]] = {
    "a word for a number": with_cell("many"),
    "a number of another language": with_cell("1_000"),
    "half a number": with_cell("1e"),
    "a fraction of a whole number": with_cell("1.5", WHOLE),
    "infinitely many": with_cell("inf", WHOLE),
    "a header twice": header_twice,
    "a field more": one_more,
    "a field less": one_less,
    "not UTF-8": not_text,
    "a huge field": with_cell("9" * 200_000),
}
READ_OR_REFUSED: dict[str, Callable[[random.Random, Cells], bytes]] = {
    "a header renamed": renamed,
    "no number": with_cell("nan"),
    "an infinite number": with_cell("inf", NUMBERS),
    "an empty cell": with_cell(""),
    "cut": cut,
    "empty": lambda *_: b"",
    "a header alone": lambda draw, cells: joined(cells[:1]),
    "binary": lambda draw, cells: draw.randbytes(2000),
    "zeros": lambda *_: bytes(2000),
}


def tables() -> Iterator[Path]:
    for name in RUNS:
        for path in sorted((REFERENCE / name).rglob("*.csv")):
            if "figures" not in path.parts:
                yield path
    yield from (REFERENCE / name for name in COSTS)


def cells_of(path: Path) -> Cells:
    """The first rows, without quotes."""
    with path.open(encoding="utf-8", newline="") as file:
        rows = [[cell.replace(",", ";").replace('"', "") for cell in row] for row in csv.reader(file)]
    return rows[:40]


@pytest.fixture
def draw() -> random.Random:
    seed = random.SystemRandom().randrange(10**6)
    print(f"seed {seed}")
    return random.Random(seed)


def test_a_damage_is_named_wherever_it_is(tmp_path: Path, draw: random.Random) -> None:
    count = 0
    for source in tables():
        path = tmp_path / source.relative_to(REFERENCE)
        path.parent.mkdir(parents=True, exist_ok=True)
        of_costs = source.relative_to(REFERENCE).as_posix() in COSTS
        readers: list[Callable[[Path], object]] = [read_cost_table] if of_costs else [read_frame, read_rows]
        for name, damage in (REFUSED | READ_OR_REFUSED).items():
            path.write_bytes(damage(draw, cells_of(source)))
            for read in readers:
                count += 1
                try:
                    read(path)
                    assert name in READ_OR_REFUSED, f"{path}: {name}: {read}"
                except RunError as error:
                    (line,) = str(error).splitlines()
                    assert line.startswith(f"{path}: "), (name, line)
                    assert len(line) < len(str(path)) + 200
    assert count > 500


@pytest.mark.parametrize("name", [one for one in TABLES if one.endswith(".csv") and TABLES[one].filled])
def test_no_column_that_is_needed_may_have_another_name(name: str, tmp_path: Path) -> None:
    path, needed = tmp_path / name, TABLES[name]
    path.parent.mkdir(exist_ok=True)
    columns = [*needed.filled, *needed.there]
    row = ["1"] * len(columns)
    path.write_bytes(joined([columns, row]))
    assert len(read_frame(path)) == len(read_rows(path, complete=True)) == 1
    for column in columns:
        path.write_bytes(joined([[f"{one}x" if one == column else one for one in columns], row]))
        with pytest.raises(RunError, match=rf'{path}: the header has no "{column}"; is it "{column}x"\?'):
            read_frame(path)
        with pytest.raises(RunError, match="the header has no"):
            read_rows(path, complete=True)


def test_the_place_is_named(tmp_path: Path) -> None:
    path = tmp_path / "eval.csv"
    for cell, fault in (
        ("1,2,3,many", 'row 2, column top1: a number was expected, not "many"; mend or remove that row'),
        ("a,2.5,3,1", 'row 2, column images: a whole number was expected, not "2.5"; mend or remove that row'),
        ("a,,3,1", "row 2, column images: a whole number was expected, not nothing; mend or remove that row"),
        (",2,3,1", "row 2, column split: a word was expected, not nothing; mend or remove that row"),
    ):
        path.write_text(f"split,images,loss,top1\n{cell}\n")
        with pytest.raises(RunError) as caught:
            read_frame(path)
        assert str(caught.value) == f"{path}: {fault}"


def test_a_table_of_an_earlier_version_lacks_what_came_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Without the checkpoint or seed of its rows no corruptions are drawn, and all else is."""
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    for column in ("checkpoint", "seed"):
        run = tmp_path / column / RUNS[1]
        shutil.copytree(REFERENCE / RUNS[1], run)
        table = run / "eval.csv"
        table.write_text(table.read_text().replace(f",{column}", ",as_it_was", 1))
        said = kattn(capfd, "plot", run, "--output", tmp_path / "out", "--quiet", "--results", tmp_path / column)
        assert said.code == 0, said.err


COMMANDS = (("plot", "{run}"), ("report", "{run}", "--no-figures"), ("audit", "{run}", "--report"), ("list", "runs"))


@pytest.mark.parametrize("name", RUNS)
def test_commands_say_it_in_one_line(
    name: str,
    tmp_path: Path,
    draw: random.Random,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    """What can be read still may lack what a command needs, which is one line, too."""
    monkeypatch.setattr(Figure, "savefig", lambda *_, **__: None)
    monkeypatch.setattr(report_run, "cpu_count", lambda: 1)
    monkeypatch.setattr(flops, "forward_flops", lambda runs: dict.fromkeys(runs, report_run.Flops()))
    run = tmp_path / "results" / name
    shutil.copytree(REFERENCE / name, run)
    path = draw.choice(sorted(one for one in run.rglob("*.csv") if "figures" not in one.parts))
    what, damage = draw.choice(list((REFUSED | READ_OR_REFUSED).items()))
    path.write_bytes(damage(draw, cells_of(path)))
    for words in COMMANDS:
        given = [one.format(run=run) for one in words]
        output = [] if words[0] == "list" else ["--output", str(tmp_path / "out"), "--quiet"]
        said = kattn(capfd, *given, *output, "--results", tmp_path / "results")
        assert said.code in (0, 2), (path, what, said.err)
        if said.code:
            (line,) = said.err.splitlines()
            assert line.startswith((str(tmp_path), "kattn report: ")), (what, line)
