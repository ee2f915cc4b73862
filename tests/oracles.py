"""What kattn prints, computes and writes, as text: the same before and after a change that is to change nothing.

    python tests/oracles.py write BEFORE
    python tests/oracles.py write AFTER --begun BEFORE        # by the changed checkout
    python tests/oracles.py compare BEFORE AFTER

``write`` runs the commands of the checkout in which this file stands, two parts at a time and one thread each, in
temporary folders of one name, so one ``write`` at a time; ``--only PART`` (repeat) some parts. Times, speeds, memory,
commits, machine, paths and names of weights are masked, nothing else. ``--begun`` goes on with the trainings that were
killed and stopped there, whose checkpoints an earlier checkout has written. ``compare`` says of every file whether it
is equal, shows what differs, and exits with 1 then. Runs that are there already, such as those of ``make
reference-small``, become texts by:

    python tests/oracles.py texts results/remade FOLDER
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import importlib
import json
import multiprocessing
import os
import re
import runpy
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from pathlib import Path
from typing import Any

import ade_files
import image_files
import numpy as np
import tiny_data
import tiny_series

TREE = Path(__file__).resolve().parents[1]
REFERENCE = TREE / "results" / "reference"
ENVIRONMENT = {
    **{f"{library}_NUM_THREADS": "1" for library in ("OMP", "MKL", "OPENBLAS")},
    **{"COLUMNS": "400", "NO_COLOR": "1", "MPLBACKEND": "Agg", "PYTHONPATH": str(TREE), "PYTHONWARNINGS": "ignore"},
}
PRELOADED = (
    *("torch", "torchvision", "timm", "pandas", "scipy.stats", "sklearn.datasets", "matplotlib.pyplot", "datasets"),
    *("foolbox", "pyautoattack", "rich", "typer", "pydantic", "safetensors.torch"),
)
"""Packages that take seconds to import: once here, for all commands, which are forks."""

TIMES = re.compile(r"seconds|per_second|memory|_mib|^commit$")
"""Columns that a clock, the system or git wrote."""
FACTS = re.compile(r"commit|dirty|versions|machine|start|end|pid|pid_start|host|\w*seconds|peak_memory_mib")
"""The same in manifests."""
DIGEST = re.compile(r"(attacked/\S+)_[0-9a-f]{10}\.csv")
"""Of files of weights, as the column ``weights``: safetensors writes the facts in a file's header in any order."""
SAID = {
    r"[\d,.]+ (img|seq|win|steps)/s": r"# \1/s",
    r"(\d+:)?\d?\d:\d\d\b|-:--:--|--:--": "#:##",
    r"\b\d[\d,.]*(e-\d+)? (s|ms|µs|seconds?|minutes?)\b": r"# \2",
    r"━+": "━",
    r" {3,}": "  ",
    r" +$": "",
}
"""Of what commands print; widths of columns go by the numbers in them."""
SHOWN = 40
"""Lines of a difference."""


def normalised(text: str, work: Path) -> str:
    """Without the machine's folders and the commit."""
    commit = _commit()
    for found, name in ((str(work), "WORK"), (str(TREE), "TREE"), (sys.prefix, "PYTHON"), (commit, "COMMIT")):
        text = text.replace(found, name)
    return text.replace(commit[:12], "COMMIT")


@cache
def _commit() -> str:
    return subprocess.run(["git", "-C", TREE, "rev-parse", "HEAD"], capture_output=True, text=True).stdout.strip()


# Files as text


def shown(path: Path, masked: bool = True) -> str:
    """A file's content as text, or its digest; with ``masked`` without what a clock or the system wrote."""
    how = _SHOWN.get(path.suffix)
    if how in (_table, _json) and not masked:
        how = _page
    return how(path) if how else ""


def _table(path: Path) -> str:
    import pandas as pd

    if not path.stat().st_size:
        return ""
    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    if "weights" in table:
        table["weights"] = table["weights"].str.replace(r"[0-9a-f]{12}", "#", regex=True)
    return table.loc[:, [not TIMES.search(name) for name in table.columns]].to_csv(index=False)


def _json(path: Path) -> str:
    return json.dumps(_masked(json.loads(path.read_text())), indent=1, ensure_ascii=False)


def _masked(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {key: "#" if FACTS.fullmatch(key) and one is not None else _masked(one) for key, one in data.items()}
    return [_masked(one) for one in data] if isinstance(data, list) else data


def _digest(array: Any) -> str:
    array = np.ascontiguousarray(array)
    return f"{array.dtype} {array.shape} {hashlib.sha256(array.tobytes()).hexdigest()[:16]}"


def _weights(path: Path) -> str:
    from safetensors import safe_open

    with safe_open(path, "np") as file:
        facts = [f"{key}: {value}" for key, value in sorted((file.metadata() or {}).items())]
        return "\n".join([*facts, *(f"{name} {_digest(file.get_tensor(name))}" for name in sorted(file.keys()))])


def _state(path: Path) -> str:
    import torch

    return "\n".join(_outline(torch.load(path, map_location="cpu", weights_only=False)))


def _outline(data: Any, name: str = "") -> Iterator[str]:
    """Keys, types and shapes; of tensors the content, too."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from _outline(value, f"{name}.{key}")
    elif hasattr(data, "detach"):
        yield f"{name} {_digest(data.detach().float().numpy())}"
    elif isinstance(data, list | tuple) and len(data) <= 20:
        for number, value in enumerate(data):
            yield from _outline(value, f"{name}[{number}]")
    else:
        yield f"{name} {type(data).__name__}"


def _arrays(path: Path) -> str:
    import h5py

    with h5py.File(path) as file:
        facts = [f"{key}: {value}" for key, value in sorted(file.attrs.items())]
        return "\n".join([*facts, *(f"{name} {_digest(file[name][()])}" for name in sorted(file))])


def _picture(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def _page(path: Path) -> str:
    return re.sub(r"data:image/\w+;base64,[^\"]*", "PICTURE", path.read_text(encoding="utf-8"))


_SHOWN: dict[str, Callable[[Path], str]] = {
    ".csv": _table,
    ".json": _json,
    ".safetensors": _weights,
    ".pt": _state,
    ".hdf5": _arrays,
    ".png": _picture,
    **dict.fromkeys((".html", ".md", ".tex", ".yaml", ".txt"), _page),
}


# Commands


class Work:
    """A temporary folder in which the commands of a part run, and the folder in which the part's texts are kept."""

    def __init__(self, folder: Path, out: Path, begun: Path | None = None) -> None:
        self.folder, self.out, self.begun = folder.resolve(), out, begun
        self.said: list[str] = []
        self.times: list[str] = []
        os.environ.update({"HOME": str(self.folder), "KATTN_DATA": str(self.folder / "data")})

    def write(self, name: str, text: str) -> Path:
        """A file that commands read."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return path

    def keep(self, name: str, text: str) -> None:
        """A text of this part."""
        path = self.out / f"{name}.txt"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(normalised(text, self.folder) + "\n", encoding="utf-8")

    def kattn(self, command: str, code: int = 0) -> str:
        """What ``kattn command`` prints; with another exit code than ``code`` the part fails."""
        return self.ended(self.begin(command), command, code)

    def begin(self, command: str) -> int:
        """A process that runs ``kattn command``."""
        return self.fork(lambda: runpy.run_module("kattn_cli", run_name="__main__", alter_sys=True), command)

    def fork(self, work: Callable[[], Any], command: str = "") -> int:
        """``work`` in a copy of this process, with all the packages that it has imported."""
        sys.stdout.flush()
        if pid := os.fork():
            return pid
        code: int | str | None = 0
        try:
            for number, name in ((1, "out"), (2, "err")):
                os.dup2(os.open(self.folder / f".{name}", os.O_CREAT | os.O_WRONLY | os.O_TRUNC), number)
            os.chdir(self.folder)
            sys.argv = ["kattn", *shlex.split(command)]
            work()
        except SystemExit as leaving:
            code = leaving.code
        except BaseException:
            traceback.print_exc()
            code = 1
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code if isinstance(code, int) else int(code is not None))

    def ended(self, pid: int, command: str, code: int = 0) -> str:
        """Wait for the end of a process, and note what it said."""
        _, status, used = os.wait4(pid, 0)
        found = os.waitstatus_to_exitcode(status)
        self.times.append(f"{used.ru_utime + used.ru_stime:6.1f} s  kattn {command}")
        out, err = ((self.folder / f".{name}").read_text(encoding="utf-8") for name in ("out", "err"))
        err = re.sub(r"^\[W.*CPUAllocator.*\n\s*", "", err, flags=re.MULTILINE)
        if found != code:
            raise RuntimeError(f"kattn {command}: exit code {found}, not {code}\n{out}\n{err}")
        said = normalised(out + (f"-- stderr:\n{err}" if err else ""), self.folder)
        for pattern, mask in SAID.items():
            said = re.sub(pattern, mask, said, flags=re.MULTILINE)
        self.said.append(f"$ kattn {normalised(command, self.folder)}   (exit code {found})\n{said}")
        return out

    def train(self, command: str) -> None:
        """Train, and set what clocks wrote to fixed numbers, so that tables made of the runs do not vary."""
        self.kattn(f"train {command}")
        for manifest in (self.folder / "results").rglob("manifest.json"):
            facts = json.loads(manifest.read_text())
            facts |= {key: 1.0 for key in ("train_seconds", "peak_memory_mib") if key in facts}
            manifest.write_text(json.dumps({**facts, "start": "2026-01-01T00:00:00+00:00"}))
            _with_fixed_times(manifest.with_name("metrics.csv"))

    def keep_commands(self) -> None:
        """What all commands said, in their order; and, not to be compared, what each took of a processor."""
        self.keep("commands", "\n".join(self.said))
        (self.out / "times.log").write_text("\n".join(self.times) + "\n", encoding="utf-8")

    def keep_files(self, folder: Path | None = None, masked: bool = True) -> None:
        """A text for each run below ``folder``, the results, and one for the files that belong to none."""
        files: dict[str, list[str]] = {}
        folder = folder or self.folder / "results"
        for path in sorted(folder.rglob("*")):
            if path.is_file() and not any(part.startswith(".") for part in path.relative_to(folder).parts):
                run = next((one for one in path.parents if (one / "manifest.json").is_file()), None)
                name = run.relative_to(folder).as_posix() if run else "rest"
                text = f"== {path.relative_to(run or folder)}\n{shown(path, masked)}"
                files.setdefault(name, []).append(DIGEST.sub(r"\1_#.csv", text))
        for name, texts in files.items():
            self.keep(name.replace("/", "-"), "\n".join(sorted(texts)))


def _with_fixed_times(metrics: Path) -> None:
    import pandas as pd

    table = pd.read_csv(metrics, dtype=str, keep_default_na=False)
    for name in table.columns:
        if TIMES.search(name):
            table[name] = table["epoch"]
    table.to_csv(metrics, index=False)


# Parts


def help_(work: Work) -> None:
    """The help of each command."""
    done = subprocess.run([sys.executable, "-m", "kattn_cli", "--version"], cwd=TREE, capture_output=True, text=True)
    work.keep("version", done.stdout + done.stderr)
    commands = [""]
    while commands:
        command = commands.pop()
        text = work.kattn(f"{command} --help")
        work.keep(f"kattn {command}".strip().replace(" ", "-"), text)
        _, _, inside = text.partition("\nCommands:\n")
        commands += [f"{command} {name}".strip() for name in re.findall(r"^  ([a-z]\S*)", inside, re.MULTILINE)]


def lists(work: Work) -> None:
    """What there is, and the commands behind the papers' tables."""
    for kind in ("attention", "data", "models", "attacks", "recipes", "attention --markdown"):
        work.kattn(f"list {kind}")
    work.kattn(f"list runs --results {REFERENCE}")
    work.kattn("data list")
    tables: dict[str, list[str]] = {"full": [], "--small": []}
    name = ""
    for line in work.kattn("reproduce --list").splitlines():
        found = re.match(r"(\w+/\w+): |  (full|--small) ", line)
        if found and found[1]:
            name = found[1]
        elif found:
            tables[found[2]].append(name)
    work.kattn(f"reproduce {' '.join(tables['full'])} --dry-run")
    work.kattn(f"reproduce {' '.join(tables['--small'])} --dry-run --small")
    work.keep_commands()


WRONG = """\
name: wrong
data: {name: digits}
model: {name: vit, depth: 4}
attention: {name: rpc, lamda: 4, layers: {12: primal}}
train: {lr: 3e-4x, epochs: -1}
"""
FAULTS = (
    "",
    "train wrong.yaml",
    "train quickstart/rcp",
    "train quickstart/rpc attention.iteratons=3 model.patch_size=3",
    "train imagenet/tost_tiny",
    "train language/shakespeare/tssa attention=bigbird",
    "train quickstart/rpc --force",
    "train quickstart/rpc --jobs 0",
    "train",
    "sweep quickstart/rpc",
    "sweep quickstart/rpc --over attention.iterations=[1,2,x] --dry-run",
    "eval nowhere",
    "attack nowhere --epsilon 1/0",
    "report nowhere",
    "plot nowhere.csv",
    "generate nowhere",
    "list nothing",
    "list data --markdown",
    "data check nothing",
    "data check mnist",
    "data collect nowhere",
    "complexity --attention nothing --n 8",
    "reproduce rpc/table99",
    "kernel-pca --tolerance 2",
)


def faults(work: Work) -> None:
    """What is said of wrong input."""
    work.write("wrong.yaml", WRONG)
    for command in FAULTS:
        work.kattn(command, code=2)
    work.keep_commands()


def recipes(work: Work) -> None:
    """Each shipped recipe with every default written out, by the functions that the commands read recipes with."""
    folders: dict[str, list[str]] = {}
    for text in work.ended(work.fork(_print_recipes), "").split("== ")[1:]:
        folders.setdefault(text.partition("/")[0], []).append(f"== {text}")
    for folder, texts in folders.items():
        work.keep(folder, "".join(texts))


def _print_recipes() -> None:
    load, sweep = (_defined(name) for name in ("load", "load_sweep"))
    shipped, find = (_defined(name) for name in ("shipped_recipes", "find_recipes"))
    for name in shipped():
        for found in find(name):
            print(f"== {name}.yaml")
            path = getattr(found, "path", found)
            if re.search(r"^sweep:", path.read_text(encoding="utf-8"), re.MULTILINE):
                for point in sweep(found, data=False):
                    print(f"# {point}\n{point.recipe.to_yaml()}")
            else:
                print(load(found, data=False, weights=False).to_yaml())


def _defined(name: str) -> Any:
    """Return a function of the package by its name, wherever a checkout keeps it."""
    beside = {"load": "load_sweep"}.get(name, name)
    (source,) = (path for path in (TREE / "kattn_cli").rglob("*.py") if f"\ndef {beside}(" in path.read_text())
    return getattr(importlib.import_module(".".join(source.relative_to(TREE).with_suffix("").parts)), name)


TIMM = """\
name: timm
data: {name: digits, image_size: 32}
model: {name: deit_tiny_patch16_224, drop_path: 0.1}
attention: {name: softmax, layers: {0: {name: rpc, iterations: 2}, -1: {name: primal, s: 4}}}
train: {epochs: 1, batch_size: 629, lr: 1e-3, warmup_epochs: 0}
"""
AUGMENTED = """\
name: augmented
data: {name: digits}
model: {name: vit, patch_size: 4, dim: 16, depth: 2, heads: 2, drop_path: 0.1}
attention: {name: symmetric, attn_drop: 0.1, layers: {0: {name: rpc, iterations: 2}}}
train:
  epochs: 2
  batch_size: 256
  lr: 5e-3
  crop_padding: 1
  flip: 0.5
  randaugment: rand-m9-mstd0.5-inc1
  erasing: 0.25
  mixup: 0.8
  cutmix: 1.0
  ema: 0.9
  checkpoint_steps: 2
"""
FOLDER = """\
name: folder
data: {name: imagefolder, root: images, image_size: 16, validation: 0.25, workers: 0}
model: {name: tost, patch_size: 4, dim: 16, depth: 2, heads: 2}
attention: {name: tssa}
train: {epochs: 2, batch_size: 8}
"""
MEAN = """\
from torch import nn


class MeanAttention(nn.Module):
    \"\"\"Every token receives the mean token. (B, N, C) -> (B, N, C).\"\"\"

    def __init__(self, dim, heads, *, seq_len, causal=False, gain=1.0):
        super().__init__()
        self.gain = gain
        self.proj = nn.Linear(dim, dim)

    def forward(self, x):
        return self.gain * self.proj(x.mean(1, keepdim=True).expand_as(x))
"""


def quickstart(work: Work) -> None:
    """The quickstart's mechanisms: trained, corrupted, attacked, taken apart, audited, plotted, reported."""
    work.train("quickstart train.epochs=3 train.keep_every=1 --seed 0 --seed 1")
    work.train("quickstart --dry-run")
    four = "quickstart/softmax/0 quickstart/rpc/0 quickstart/primal_plus/0 quickstart/tssa/0"
    work.kattn("eval quickstart --corruptions --limit 20 --reference quickstart/softmax")
    work.kattn("eval quickstart/tssa/0 --save-images --corruption fog")
    work.kattn("attack quickstart --pgd --fgsm --noise --epsilon 4/255,16/255 --limit 30")
    work.kattn(f"attack {four} --pgd --convention reference --steps 3 --restarts 2 --no-checks --limit 9")
    work.kattn(f"attack {four} --pgd --norm l2 --epsilon-l2 0.5 --targeted --no-checks --steps 3 --limit 9")
    work.kattn(f"attack {four} --spsa --sld --cw --square --steps 4 --no-checks --limit 5")
    work.kattn("attack quickstart/tssa/0 --autoattack --epsilon 8/255 --limit 1 --no-checks")
    work.kattn("spectrum quickstart --inputs 8")
    work.kattn(f"audit {four} --inputs 8 --permutations 19")
    work.kattn("plot quickstart --paper rpc --format png --output results/plotted")
    work.kattn("report quickstart --paper rpc --no-figures --output results/page")
    work.kattn("list runs")
    work.keep_files()
    work.keep_commands()


def images(work: Work) -> None:
    """Every mechanism and architecture; timm's models, augmentation, folders of images, an attention of one's own."""
    for name, recipe in (("timm", TIMM), ("augmented", AUGMENTED), ("folder", FOLDER)):
        work.write(f"{name}.yaml", recipe)
    mean = work.write("mean.py", MEAN)
    for split, count, first in (("train", 12, 0), ("val", 3, 50)):
        image_files.write_classes(work.folder / "images" / split, dict.fromkeys("abc", count), first)
    work.train("mechanisms architectures audit train.epochs=1 train.keep_every=1 --seed 0")
    work.train("timm.yaml augmented.yaml folder.yaml")
    other = "train.ema=0.5 train.accumulate=2 train.repeats=2 train.clip_grad=1 train.grad_checkpointing=true"
    work.train(f"augmented.yaml name=other {other} train.precision=bfloat16")
    work.train(f"quickstart/softmax name=own attention.name={mean}:MeanAttention attention.gain=0.5 train.epochs=1")
    work.train("augmented.yaml name=both --seed 1 --seed 2 --jobs 2")
    work.said[-1] = "\n".join(sorted(work.said[-1].splitlines()))
    work.train("augmented.yaml name=begun init_from=results/augmented/0 model.patch_size=2")
    work.kattn("sweep augmented.yaml name=swept train.epochs=1 --over attention.attn_drop=[0,0.2] --over seed=[0,1]")
    work.kattn("eval mechanisms architectures timm augmented other own both begun swept")
    work.kattn("eval folder --ood same=images/val --checkpoint last")
    work.kattn("spectrum mechanisms/reformer architectures own --inputs 4")
    work.kattn("audit audit/scaled audit/xcit audit/symmetric --inputs 8 --permutations 19")
    work.train("mechanisms architectures audit --dry-run")
    work.keep_files()
    work.keep_commands()


SERIES = """\
name: series
data: {name: uea, set: ERing, root: uea, validation: 0.25}
model: {name: encoder, dim: 16, depth: 2, heads: 2}
attention: {name: primal, s: 4}
train: {epochs: 2, batch_size: 6, lr: 1e-2}
"""


def sequences(work: Work) -> None:
    """Series, lists, contours."""
    tiny_series.write_series(work.folder / "uea", train=24)
    work.write("series.yaml", SERIES)
    small = "data.train=96 data.choose_by=32 data.test=32 train.epochs=2 --seed 0"
    work.train("series.yaml")
    work.train(f"lra/small/listops {small}")
    work.train(f"lra/pathfinder/softmax lra/pathfinder/tssa {small} model.dim=32 train.batch_size=48")
    work.train("series/japanese_vowels model.dim=32 train.epochs=2 train.batch_size=64 --seed 0")
    work.train("series/japanese_vowels --dry-run")
    names = "series/japanese_vowels lra/small/listops lra/pathfinder"
    work.kattn(f"eval series {names}")
    work.kattn("spectrum series --inputs 4")
    for paper in ("primal", "tost"):
        work.kattn(f"plot {names} --paper {paper} --format png --output results/{paper}")
    work.keep_files()
    work.keep_commands()


WORDS = ("the", "wall", "fell", "on", "beer", "bottles", "of", "café", "and", "nobody", "sang", "well")


def text(work: Work) -> None:
    """Language models, clean and with words swapped; mixtures of experts; sentences."""
    lines = [" ".join(words) + "." for words in np.random.default_rng(0).choice(WORDS, (400, 8))]
    work.write("corpus.txt", "\n".join(lines))
    work.write("other.txt", "\n".join(lines[300:330]))
    for split in ("train", "dev", "test"):
        work.write(f"sst2/{split}.tsv", "".join(f"{line}\t{'beer' in line:d}\n" for line in lines[:60]))
        work.write(f"sst5/{split}.txt", "".join(f"__label__{1 + n % 5} {line}\n" for n, line in enumerate(lines[:60])))
        for number, line in enumerate(lines[:40]):
            work.write(f"imdb/{split}/{('neg', 'pos')['beer' in line]}/{number}_1.txt", line)
    small = "data.path=corpus.txt model.dim=32 data.context=16 train.epochs=2 train.warmup_steps=5 --seed 0"
    work.train(f"language/shakespeare {small}")
    work.train(f"language/moe/small_softmax {small} data.vocabulary_size=300")
    work.train(f"language/shakespeare/tssa {small} data.vocabulary=words name=words")
    tuned = "model.dim=32 train.epochs=2 train.warmup_epochs=0 train.batch_size=16 --seed 0"
    moe, words = (
        f"init_from={run} data.vocabulary_from={run}"
        for run in ("results/language/moe/small_softmax/0", "results/words/0")
    )
    work.train(f"sentences/moe/small_softmax sentences/moe/small_rpc_softmax data.root=sst2 {tuned} {moe}")
    work.train(f"sentences/sst5_rpc data.root=sst5 {tuned} {words} model.depth=3 model.heads=4")
    work.train(f"lra/text/primal_plus data.root=imdb data.seq_len=40 {tuned}")
    work.kattn("eval language words --stride 4 --corpus other=other.txt")
    work.kattn("eval sentences lra")
    work.kattn("attack language --word-swap --share 0.1 --share 0.3 --stride 8")
    for run in ("tssa", "softmax", "primal_plus"):
        work.kattn(f"generate language/shakespeare/{run} --prompt 'the wall' --tokens 30")
    for paper in ("rpc", "primal", "tost"):
        work.kattn(f"plot language sentences --paper {paper} --format png --output results/{paper}")
    work.keep_files()
    work.keep_commands()


MASKS = """\
name: masks
data: {name: ade20k, root: ade, image_size: 16, stride: 12, classes: 3, validation: 0.2, workers: 0}
model: {name: segmenter, patch_size: 4, dim: 16, depth: 2, heads: 2, decoder_depth: 1}
attention: {name: symmetric, layers: {0: {name: rpc, iterations: 2}}}
train: {epochs: 3, batch_size: 4, lr: 5e-3, label_smoothing: 0.0, flip: 0.5}
"""


def masks(work: Work) -> None:
    """Segmentation of a few pictures and of canvases; FAN on images as MNIST's."""
    ade_files.write_ade(work.folder / "ade")
    tiny_data.write_mnist(work.folder / "fashion")
    work.write("masks.yaml", MASKS)
    work.train("masks.yaml")
    canvases = "data.root=fashion data.size=32 data.train=24 data.test=6 model.dim=32 train.epochs=2"
    work.train(f"segmentation/canvases {canvases} --seed 0")
    work.train("fashion_mnist/fan fashion_mnist/rpc data.root=fashion train.epochs=2 --seed 0")
    work.kattn("eval masks segmentation --corruptions")
    work.kattn("eval masks --save-images")
    work.kattn("eval fashion_mnist --limit 10")
    work.kattn("plot masks segmentation --paper rpc --format png --output results/plotted")
    work.kattn("data check mnist root=fashion", code=2)
    work.keep_files()
    work.keep_commands()


def control(work: Work) -> None:
    """Trajectories that are recorded, trained on, and acted by."""
    work.kattn("data collect corridor")
    sac = "--algorithm sac --steps 120 --transitions 60 --evaluate-every 60 --episodes 2"
    options = "batch_size=16 learning_starts=20 'policy_kwargs={net_arch: [8]}'"
    work.kattn(f"data collect InvertedPendulum-v5 {sac} {options}")
    work.train("control/small/corridor train.epochs=2")
    causal = "attention.layers.-1.name=primal attention.layers.-1.projection=data-independent"
    work.train(f"control/small/corridor train.epochs=2 name=control/small/primal {causal}")
    work.kattn("eval control/small/corridor control/small/primal --target-return 19 --target-return=-19 --episodes 3")
    work.kattn("plot control --format png --output results/plotted")
    work.keep("collected", "\n".join(f"== {path.name}\n{shown(path)}" for path in _files(work.folder / "data")))
    work.keep_files()
    work.keep_commands()


def killed(work: Work) -> None:
    """Trainings that were killed or stopped and go on, as if they had not been."""
    work.write("augmented.yaml", AUGMENTED)
    train = "train augmented.yaml train.epochs=6 train.checkpoint_steps=1 name="
    work.train(train.removeprefix("train ") + "undisturbed")
    results, begun = work.folder / "results", work.out / "begun"
    if work.begun:
        shutil.copytree(work.begun / "killed" / "begun", begun)
    else:
        for name, by, code in (("killed", signal.SIGKILL, -9), ("stopped", signal.SIGINT, 130)):
            pid = work.begin(train + name)
            metrics = results / name / "0" / "metrics.csv"
            while not metrics.is_file() or metrics.read_text().count("\n") < 5:
                time.sleep(0.01)
            os.kill(pid, by)
            work.ended(pid, train + name, code)
            shutil.move(results / name, begun / name)
    work.said.clear()
    for name in ("killed", "stopped"):
        shutil.copytree(begun / name, results / name)
        work.train(f"{train.removeprefix('train ')}{name} --resume")
        for table in ("metrics.csv", "checkpoints/best.safetensors", "checkpoints/last.safetensors"):
            ours, theirs = (shown(results / one / "0" / table) for one in (name, "undisturbed"))
            verdict = "equal" if ours.replace(name, "undisturbed") == theirs else "DIFFERS"
            work.said.append(f"{name}, {table}: {verdict}\n")
    work.said = [re.sub(r"step \d+", "step #", one) for one in work.said]
    for path in results.rglob("manifest.json"):
        path.write_text(re.sub(r'"step": \d+', '"step": "#"', path.read_text()))
    work.keep_files()
    work.keep_commands()


def costs(work: Work) -> None:
    """Costs and speeds, of which what was not measured is kept; solvers' settings are chosen by their times."""
    sizes = "--n 16 --n 32 --dim 32 --heads 2 --seconds 0.01"
    names = "--attention tssa --attention performer --attention 'primal projection=data-independent'"
    work.kattn(f"complexity {names} --attention 'rpc iterations=2' --attention xca {sizes}")
    work.kattn(f"complexity {names} {sizes} --decode")
    work.kattn("complexity --model quickstart/rpc --seconds 0.01")
    work.kattn("kernel-pca --n 100 --components 4 --rounds 1")
    work.kattn("throughput quickstart/softmax --rounds 1 --steps 2")
    work.kattn("benchmark primal_operator --rounds 1 --seconds 0.001")
    for path in (work.folder / "results").rglob("*"):
        if path.suffix == ".csv":
            _drop_measured(path)
        elif path.suffix == ".png":
            path.write_bytes(b"")
        elif path.suffix == ".json" and path.parent.name == "kernel_pca":
            path.write_text(re.sub(r'(?<=": )\d[^,\n]*', '"#"', path.read_text()))
    work.keep_files()
    said = re.sub(r"^.*tokens: .*\n", "", "\n".join(work.said), flags=re.MULTILINE)
    work.said = [re.sub(r" +", " ", re.sub(r"(?<=[ \[(])([-+]?\d\S*|—|yes|no)", "#", said))]
    work.keep_commands()


def _drop_measured(path: Path) -> None:
    import pandas as pd

    table = pd.read_csv(path, dtype=str, keep_default_na=False)
    measured = re.compile(r"spread|repeats|rounds|ratio|^(value|low|high|says|holds|setting|accuracy|reached)$")
    table.loc[:, [not measured.search(name) for name in table.columns]].to_csv(path, index=False)


def report(work: Work) -> None:
    """The page over the committed results, and whether it is the committed one."""
    papers = "--paper rpc --paper primal --paper tost"
    work.kattn(f"report {REFERENCE} {papers} --title 'Reference results' --output report")
    made, committed = work.folder / "report", REFERENCE / "report"
    ours, theirs = ({path.relative_to(one): shown(path, False) for path in _files(one)} for one in (made, committed))
    same = {name: "equal  " if ours.get(name) == theirs.get(name) else "DIFFERS" for name in {**ours, **theirs}}
    work.keep("committed", "\n".join(f"{verdict} {name}" for name, verdict in sorted(same.items())))
    for kind in ("pages", "tables", "figures"):
        found = [name for name in ours if kind == (name.parts[0] if name.parent.parts else "pages")]
        work.keep(kind, "\n".join(f"== {name}\n{ours[name]}" for name in found))
    work.keep_commands()


PAPERS = {
    "rpc": ("language/shakespeare", "fashion_mnist", "segmentation", "sentences"),
    "primal": ("series/japanese_vowels", "lra/small/listops", "language/shakespeare", "control"),
    "tost": ("lra/small/listops", "language/shakespeare", "architectures"),
}


def plots(work: Work) -> None:
    """Figures and tables of the committed results, and the audit's page."""
    for paper, names in PAPERS.items():
        for name in names:
            where = f"--output results/{paper}/{name} --results {REFERENCE}"
            work.kattn(f"plot {name} --paper {paper} --format png {where}")
    folders = [REFERENCE / name for name in ("complexity", "benchmark", "kernel_pca")]
    tables = [str(path) for one in folders for path in _files(one) if re.fullmatch(r"[^.]*\.csv", path.name)]
    work.kattn(f"plot {' '.join(tables)} --format png --output results/costs")
    work.kattn(f"audit audit --report --output results/audit --results {REFERENCE}")
    work.keep_files(masked=False)
    work.keep_commands()


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


PARTS: dict[str, Callable[[Work], None]] = {
    "report": report,
    "quickstart": quickstart,
    "images": images,
    "text": text,
    "plots": plots,
    "sequences": sequences,
    "masks": masks,
    "control": control,
    "killed": killed,
    "costs": costs,
    "recipes": recipes,
    "faults": faults,
    "lists": lists,
    "help": help_,
}
"""The longest first."""


def write(out: Path, parts: Iterable[str], begun: Path | None) -> int:
    """Write the texts of some parts into ``out``, in place of what is there of them."""
    for name in PRELOADED:
        importlib.import_module(name)
    failed = 0
    with ProcessPoolExecutor(2, mp_context=multiprocessing.get_context("fork")) as pool:
        works = {pool.submit(_part, name, out / name, begun): name for name in parts}
        for done in as_completed(works):
            try:
                print(f"{works[done]}: {done.result()}", flush=True)
            except Exception as error:
                print(f"{works[done]}: FAILED: {error}", flush=True)
                failed = 1
    return failed


def _part(name: str, out: Path, begun: Path | None) -> str:
    start, used = time.monotonic(), os.times()
    shutil.rmtree(out, ignore_errors=True)
    folder = Path(tempfile.gettempdir()) / f"kattn-oracles-{name}"
    folder.mkdir()  # of one name, since the checksum in a checkpoint is of the paths in its recipe, too
    try:
        PARTS[name](Work(folder, out.resolve(), begun))
    finally:
        shutil.rmtree(folder)
    spent = sum(os.times()[:4]) - sum(used[:4])
    return f"{time.monotonic() - start:.0f} s, of a processor {spent:.0f} s"


def texts(results: Path, out: Path) -> int:
    """Write the texts of a folder of runs."""
    Work(results, out).keep_files(results.resolve())
    for path in out.rglob("*.txt"):
        path.write_text(re.sub(r"^.*,train s,.*\n", "", path.read_text(), flags=re.MULTILINE))
    return 0


def compare(before: Path, after: Path) -> int:
    """Say which texts are equal, and how the others differ; 1 if any does."""
    both = [{path.relative_to(one): path.read_text() for path in one.rglob("*.txt")} for one in (before, after)]
    for name in sorted(both[0].keys() | both[1].keys()):
        old, new = (texts.get(name, "") for texts in both)
        if old == new:
            print(f"equal    {hashlib.sha256(old.encode()).hexdigest()[:12]}  {name}")
            continue
        print(f"DIFFERS  {name}")
        lines = list(difflib.unified_diff(old.splitlines(), new.splitlines(), "before", "after", lineterm="", n=1))
        print("\n".join(line[:240] for line in lines[:SHOWN]))
        if len(lines) > SHOWN:
            print(f"… {len(lines) - SHOWN} more lines")
    return int(both[0] != both[1])


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    writing = commands.add_parser("write")
    writing.add_argument("folder", type=Path)
    writing.add_argument("--only", action="append", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    writing.add_argument("--begun", type=Path, help="what an earlier checkout wrote")
    comparing = commands.add_parser("compare")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    telling = commands.add_parser("texts")
    telling.add_argument("results", type=Path)
    telling.add_argument("folder", type=Path)
    given = parser.parse_args()
    if given.command == "compare":
        return compare(given.before, given.after)
    if given.command == "texts":
        return texts(given.results, given.folder)
    if not ENVIRONMENT.items() <= os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], {**os.environ, **ENVIRONMENT})
    return write(given.folder, given.only or PARTS, given.begun)


if __name__ == "__main__":
    sys.exit(main())
