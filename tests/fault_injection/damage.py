"""Damaged inputs of every reader: a line that says which file, never a traceback, never other numbers in silence."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

from tiny_tasks import WRITERS, write_tiny

from fault_injection.case import Case, chance, judged
from fault_injection.commands import Kattn, Said
from fault_injection.runs import rows, tensors

RUN = "tiny/0"
Damage = Callable[[Path, Random], object]


def _cut(path: Path, draw: Random) -> None:
    data = path.read_bytes()
    path.write_bytes(data[: draw.randrange(len(data)) if data else 0])


def _flip(path: Path, draw: Random) -> None:
    data = bytearray(path.read_bytes())
    for _ in range(draw.randint(1, 8)):
        if data:
            data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def _folder(path: Path, draw: Random) -> None:
    path.unlink()
    path.mkdir()


def _loop(path: Path, draw: Random) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _not_utf8(path: Path, draw: Random) -> None:
    data = path.read_bytes()
    at = draw.randint(0, len(data))
    path.write_bytes(data[:at] + b"\xff\xfe\x80" + data[at:])


FILES: dict[str, Damage] = {
    "cut short": _cut,
    "bits flipped": _flip,
    "emptied": lambda path, draw: path.write_bytes(b""),
    "random bytes": lambda path, draw: path.write_bytes(draw.randbytes(draw.randint(1, 5000))),
    "another text": lambda path, draw: path.write_text("hello\n"),
    "not UTF-8": _not_utf8,
    "a folder": _folder,
    "gone": lambda path, draw: path.unlink(),
    "a loop of links": _loop,
}
"""What happens to any file."""


def _cells(change: Callable[[list[list[str]], Random], object]) -> Damage:
    """Change a CSV's cells, the header's among them."""

    def damage(path: Path, draw: Random) -> None:
        table = [line.split(",") for line in path.read_text(encoding="utf-8").splitlines()]
        if len(table) > 1:
            change(table, draw)
        path.write_text("".join(",".join(cells) + "\n" for cells in table), encoding="utf-8")

    return damage


def _put(*values: str, header: bool = False) -> Callable[[list[list[str]], Random], None]:
    def change(table: list[list[str]], draw: Random) -> None:
        row = table[0] if header else draw.choice(table[1:])
        row[draw.randrange(len(row))] = draw.choice(values)

    return change


TABLES: dict[str, Damage] = {
    "a column renamed": _cells(_put("renamed", "", "top 1", header=True)),
    "a column twice": _cells(lambda table, draw: table[0].__setitem__(-1, table[0][0])),
    "a word for a number": _cells(_put("many", "0;9", "1e", "--")),
    "NaN": _cells(_put("nan", "inf", "-inf")),
    "nothing in a cell": _cells(_put("")),
    "a field more": _cells(lambda table, draw: draw.choice(table[1:]).append("7")),
    "a field less": _cells(lambda table, draw: draw.choice(table[1:]).pop()),
    "the header alone": _cells(lambda table, draw: table.__delitem__(slice(1, None))),
    "a quotation mark": _cells(_put('"')),
    "a row twice": _cells(lambda table, draw: table.append(list(table[1]))),
}
"""What a hand, or a spreadsheet, does to a CSV."""


def _sub(find: str, put: str) -> Damage:
    def damage(path: Path, draw: Random) -> None:
        path.write_text(path.read_text(encoding="utf-8").replace(find, put, 1), encoding="utf-8")

    return damage


def _another_kind(path: Path, draw: Random) -> None:
    manifest = json.loads(path.read_text(encoding="utf-8"))
    manifest[draw.choice(sorted(manifest))] = draw.choice([None, True, -1, 2.5, "x", [], [1], ["x"], {}, {"x": [None]}])
    path.write_text(json.dumps(manifest), encoding="utf-8")


MANIFESTS: dict[str, Damage] = {
    "a value of another kind": _another_kind,
    "nested deeply": lambda path, draw: path.write_text("[" * 100_000),
    "a list": lambda path, draw: path.write_text("[1, 2]"),
    "null": lambda path, draw: path.write_text("null"),
    "no name": _sub('"name"', '"nome"'),
    "a seed in words": _sub('"seed": 0', '"seed": "none"'),
    "a name with markup": _sub('"tiny"', '"tiny[/b]"'),
    "no start": _sub('"start"', '"begin"'),
}

READ: dict[str, tuple[str, ...]] = {
    "list": ("list", "runs"),
    "plot": ("plot", "tiny", "--format", "svg"),
    "report": ("report", "--no-figures"),
    "eval": ("eval", "tiny", "--again", "-q"),
    "attack": ("attack", "tiny", "--fgsm", "--epsilon", "4/255", "--again", "-q"),
    "spectrum": ("spectrum", "tiny", "-q"),
    "train on": ("train", "tiny.yaml", "--resume", "--device", "cpu", "train.epochs=4"),
}
"""Commands that read a run."""


def template(kattn: Kattn) -> Path:
    """Return a folder of results with one run that has every table, made once."""
    made = kattn.folder / "template"
    if not made.exists():
        recipe = write_tiny("images", kattn.folder)
        unfinished = kattn.folder / "template.new"
        kattn.must("train", recipe, "--device", "cpu", "--results", unfinished, "-q")
        kattn.must("eval", "tiny", "--corruption", "fog", "--severity", "1", "--results", unfinished, "-q")
        for words in (READ["attack"], READ["spectrum"], READ["plot"]):
            kattn.must(*words, "--results", unfinished)
        unfinished.rename(made)
    return made


def damages(path: Path) -> dict[str, Damage]:
    """Return what can happen to a file of this name."""
    own = {".csv": TABLES, ".json": MANIFESTS}.get(path.suffix, {})
    return {**FILES, **own}


def runs(kattn: Kattn, times: int, seed: int) -> Iterator[Case]:
    """Damage a file of a run, then let a command read the run."""
    whole = template(kattn)
    files = sorted(path.relative_to(whole) for path in whole.rglob("*") if path.is_file() and _read(path))
    for number in range(times):
        draw = chance(seed, "runs", number)
        results = kattn.folder / f"run-{number}"
        shutil.copytree(whole, results)
        kind = draw.choice(sorted({path.suffix for path in files}))
        path = results / draw.choice([one for one in files if one.suffix == kind])
        how = draw.choice(sorted(damages(path)))
        command = draw.choice(sorted(READ))
        before = tensors(path) if path.suffix == ".safetensors" else ""
        damages(path)[how](path, draw)
        said = kattn.run(*READ[command], "--results", results)
        what = f"{path.relative_to(results)} {how}: {command}"
        yield judged("damaged runs", what, said, _silent(path, before, command, said, results / RUN))
        shutil.rmtree(results)


def _read(path: Path) -> bool:
    return not path.name.startswith(".") and path.suffix in (".csv", ".json", ".yaml", ".safetensors", ".pt")


def _silent(path: Path, before: str, command: str, said: Said, run: Path) -> str:
    """Return ``silent`` if what was measured is called best, and best are other weights than those of the training."""
    if path.name != "best.safetensors" or command not in ("eval", "attack") or said.code != 0:
        return ""
    try:
        same = tensors(path) == before
    except Exception:  # of safetensors and of the system
        same = False
    table = rows(run / {"eval": "eval.csv", "attack": "attacks.csv"}[command])
    return "" if same or table[-1].get("checkpoint") != "best" else "silent"


def states(kattn: Kattn, times: int, seed: int) -> Iterator[Case]:
    """Damage what an interrupted training goes on from: it ends as one that was never stopped, or refuses."""
    recipe = write_tiny("sequences", kattn.folder)
    half, truth = kattn.folder / "half", kattn.folder / "whole"
    kattn.must("train", recipe, "--results", truth, "-q")
    training = kattn.start("train", recipe, "--results", half, "-q")
    while not (half / RUN / "checkpoints/resume.previous.pt").exists():
        assert not training.ended(0.001), "it ended before it could be interrupted"
    training.kill()
    training.said()
    files = sorted((half / RUN / "checkpoints").glob("[!.]*"))
    for number in range(times):
        draw = chance(seed, "states", number)
        results = kattn.folder / f"state-{number}"
        shutil.copytree(half, results)
        path = results / RUN / "checkpoints" / draw.choice(files).name
        how = draw.choice(sorted(FILES))
        FILES[how](path, draw)
        said = kattn.run("train", results / RUN, "--resume", "-q")
        other = said.code == 0 and _trained_otherwise(results / RUN, truth / RUN)
        yield judged("damaged states", f"{path.name} {how}", said, "silent" if other else "")
        shutil.rmtree(results)


def _trained_otherwise(run: Path, truth: Path) -> bool:
    """Return whether the last weights differ; those of former epochs, which a training only keeps, may be damaged."""
    return tensors(run / "checkpoints/last.safetensors") != tensors(truth / "checkpoints/last.safetensors")


def data(kattn: Kattn, times: int, seed: int) -> Iterator[Case]:
    """Damage a file of a data set, then train on it."""
    for number in range(times):
        draw = chance(seed, "data", number)
        task = draw.choice(sorted(WRITERS))
        folder = kattn.folder / f"data-{number}"
        folder.mkdir()
        recipe = write_tiny(task, folder)
        path = draw.choice(sorted(one for one in folder.rglob("*") if one.is_file() and one != recipe))
        how = draw.choice(sorted(FILES))
        FILES[how](path, draw)
        said = kattn.run("train", recipe, "--device", "cpu", "--results", folder / "results", "-q")
        yield judged("damaged data", f"{task}: {path.name} {how}", said)
        shutil.rmtree(folder)


def _deep(draw: Random) -> str:
    opened, closed = draw.choice([("[", "]"), ("{a: ", "}")])
    depth = draw.choice([500, 5_000, 50_000])
    return f"name: deep\ndata: {opened * depth}{closed * depth}\n"


LAUGHS = "a: &a [x, x]\n" + "".join(
    f"{name}: &{name} [*{before}, *{before}, *{before}, *{before}, *{before}]\n"
    for before, name in zip("abcdefghijklmno", "bcdefghijklmnop", strict=True)
)
WHOLE: dict[str, Callable[[Random], str]] = {
    "nested deeply": _deep,
    "a billion laughs": lambda draw: LAUGHS + "data: *p\n",
    "ten megabytes": lambda draw: "name: big\ndata: [" + "1, " * 3_500_000 + "]\n",
    "two documents": lambda draw: "name: a\n---\nname: b\n",
    "a list": lambda draw: "[1, 2]\n",
    "a tag": lambda draw: "name: !!python/object/apply:os.system ['true']\n",
    "nothing": lambda draw: "",
    "a number": lambda draw: "7\n",
}
"""Recipes that are no recipes."""
VALUES = (
    *("null", "true", "-1", "0", "1e99", ".nan", ".inf", "''", "[]", "{}", "[1, 2]", "{a: 1}", "words", "2.5"),
    *("99999999999999999999", "/", "~", "&x", "*x", "!!binary x", "2026-01-01", "0x10", "1_000", "'\\0'", "é", "\t"),
)
"""What a hand may write for a value."""


LINES = 12
"""Lines in which a recipe is refused at most: one a fault."""


def recipes(kattn: Kattn, times: int, seed: int) -> Iterator[Case]:
    """Malformed recipes: each is refused in a few lines, or is one that can be planned."""
    sound = write_tiny("images", kattn.folder).read_text(encoding="utf-8")
    for number in range(times):
        draw = chance(seed, "recipes", number)
        path = kattn.folder / f"recipe-{number}.yaml"
        if draw.random() < 0.3:
            how = draw.choice(sorted(WHOLE))
            path.write_text(WHOLE[how](draw), encoding="utf-8")
        elif draw.random() < 0.3:
            path.write_text(sound, encoding="utf-8")
            how = draw.choice(sorted(FILES))
            FILES[how](path, draw)
        else:
            how, text = _edited(sound, draw)
            path.write_text(text, encoding="utf-8")
        said = kattn.run("train", path, "--dry-run", "--device", "cpu")
        long = said.code == 2 and len(said.err.splitlines()) > LINES
        yield judged(
            "malformed recipes", f"{how} ({len(said.err.splitlines())} lines)", said, "traceback" if long else ""
        )
        _remove(path)


def _remove(path: Path) -> None:
    shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _edited(text: str, draw: Random) -> tuple[str, str]:
    """One value of the recipe is another, or a key is."""
    lines = text.splitlines()
    at = draw.randrange(len(lines))
    parts = lines[at].replace("{", "{ ").replace("}", " }").split(" ")
    kind = draw.choice(("value", "key", "gone", "twice"))
    if kind == "gone":
        del lines[at]
    elif kind == "twice":
        lines.append(lines[at])
    else:
        keys = [number for number, word in enumerate(parts) if word.endswith(":")]
        values = [number for number, word in enumerate(parts) if word.strip("{},:") and number not in keys]
        place = draw.choice(values if kind == "value" and values else keys)
        value = draw.choice(VALUES)
        parts[place] = f"{value}:" if place in keys else value + ("," if parts[place].endswith(",") else "")
        lines[at] = " ".join(parts)
    return f"a {kind} changed: {lines[at] if at < len(lines) else ''}", "\n".join(lines) + "\n"


USERS = {
    "leaves at import": "import sys\nsys.exit(0)\n",
    "leaves when built": "import sys\nfrom torch import nn\nclass Own(nn.Module):\n"
    "    def __init__(self, dim, heads, **rest):\n        sys.exit(0)\n",
    "leaves in forward": "import sys\nfrom torch import nn\nclass Own(nn.Module):\n"
    "    def __init__(self, dim, heads, **rest):\n        super().__init__()\n"
    "    def forward(self, x):\n        sys.exit(0)\n",
    "raises in training": "from torch import nn\nclass Own(nn.Module):\n"
    "    def __init__(self, dim, heads, **rest):\n        super().__init__()\n        self.map = nn.Linear(dim, dim)\n"
    "    def forward(self, x):\n        if self.training and x.device.type != 'meta' and x.abs().sum() > 0:\n"
    "            raise ValueError('no')\n        return self.map(x)\n",
    "raises a BaseException": "class Odd(BaseException): pass\nraise Odd('odd')\n",
    "does not parse": "def Own(:\n",
    "has no such name": "Other = 1\n",
    "is no module": "Own = 3\n",
    "imports what is not there": "import nothing_of_this_name\n",
    "never ends a recursion": "def f():\n    f()\nf()\n",
}
"""Files of a user's own attention."""


def users_files(kattn: Kattn) -> Iterator[Case]:
    """A user's own attention that is at fault: the file is named, and the exit code tells."""
    for number, (how, text) in enumerate(USERS.items()):
        folder = kattn.folder / f"own-{number}"
        folder.mkdir()
        (folder / "own.py").write_text(text, encoding="utf-8")
        recipe = write_tiny("images", folder)
        words = ("train", recipe, f"attention.name={folder / 'own.py'}:Own", "--device", "cpu")
        said = kattn.run(*words, "--results", folder / "results", "-q")
        silent = said.code == 0 or (said.verdict == "refused" and "own.py" not in said.err)
        yield judged("users' files", f"own.py {how}", said, "silent" if silent else "")
