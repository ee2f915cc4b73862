"""How well language models predict texts: their own splits, clean and with words swapped, and other corpora."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from kattn_cli.console import console, progress_bar
from kattn_cli.data import data_set
from kattn_cli.data.corpora import EncodedText, TextCorpus, encode_source, encode_texts
from kattn_cli.data.corpora.source import source_at
from kattn_cli.data.images import SplitName
from kattn_cli.data.text import TextData
from kattn_cli.data.word_swap import swap_words_in
from kattn_cli.device import device_name
from kattn_cli.errors import DataError, RunError
from kattn_cli.runs.csv_rows import read_rows, replace_rows
from kattn_cli.runs.identity import identity
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.tables.values import PERPLEXITY_CSV
from kattn_cli.tasks.expert_loads import note_evaluation
from kattn_cli.tasks.task import Asked
from kattn_cli.tasks.text.windows import Surprise, surprise
from kattn_cli.training.opened import OpenRun, reads


@dataclass(frozen=True)
class Text:
    """A text to predict: a split of the run's corpus, or another corpus at ``path``.

    ``swap_share`` of the words of a split are swapped, drawn from ``swap_seed``.
    """

    corpus: str = ""
    split: SplitName = "test"
    path: Path | None = None
    swap_share: float = 0.0
    swap_seed: int = 0

    def name(self) -> str:
        """Such as ``test``, ``test, 5 % of words swapped`` or ``ptb``."""
        swapped = f", {100 * self.swap_share:g} % of words swapped" if self.swap_share else ""
        return f"{self.corpus or self.split}{swapped}"


@dataclass(frozen=True)
class Measured:
    """A run, a text, and the row that says how well it was predicted."""

    run: Run
    text: Text
    row: Mapping[str, Any] = field(repr=False)

    def number(self, column: str) -> float:
        """A column of the row; not a number where it is empty."""
        value = self.row[column]
        return float(value) if value not in ("", None) else float("nan")


def measure_perplexity(runs: Sequence[Run], texts: Sequence[Text], asked: Asked) -> list[Measured]:
    """Measure each run on each text; rows go to each run's ``perplexity.csv`` as they are measured.

    What was measured before with the same weights is taken from there.

    Raises:
        RunError: if a run is no language model, or the window does not suit it.
        DataError: if a text cannot be read, in one line.
    """
    done = []
    with progress_bar("token") as bar:
        for run in runs:
            record = provenance(device_name(asked.device))
            subject = _Subject(run, asked)
            fresh = False
            try:
                for text in texts:
                    task = bar.add_task(f"{run.label}/{run.folder.name} {text.name()}", total=None, count="", note="")
                    row = subject.known(text)
                    if row is None:
                        total, fresh = subject.count(text), True
                        bar.update(task, total=total)
                        row = subject.measure(text, partial(_tell, bar, task, total))
                        replace_rows(run.folder / PERPLEXITY_CSV, [row])
                    bar.remove_task(task)
                    done.append(Measured(run, text, row))
            finally:
                if fresh:
                    run.add_measurement(record)
    return done


def _tell(bar: Any, task: Any, total: int, asked: int) -> None:
    bar.update(task, completed=asked, count=f"{asked:,}/{total:,}")


class _Subject:
    """A language model and its corpus, under measurement."""

    def __init__(self, run: Run, asked: Asked) -> None:
        self.opened: OpenRun = asked.opener.open(run)
        if not isinstance(self.opened.data, TextData):
            raise RunError(
                f"{run.folder}: {reads(self.opened.data)}; perplexity and --word-swap are of language models"
            )
        self.data: TextData = self.opened.data
        self.asked = asked
        self.weights = self.opened.weights
        self.window = asked.window or self.data.context
        if self.window > self.data.context:
            raise RunError(f"{run.folder}: sees {self.data.context:,} tokens, so --window {self.window:,} is too long")
        if asked.stride > self.window:
            raise RunError(f"{run.folder}: --stride {asked.stride:,} is more than the window of {self.window:,}")
        self._encoded: dict[Text, EncodedText] = {}

    def encoded(self, text: Text) -> EncodedText:
        """Its tokens."""
        if text not in self._encoded:
            try:
                self._encoded[text] = self._encode(text)
            except DataError as error:
                raise DataError(f"--corpus {text.corpus}: {error}" if text.corpus else str(error)) from None
        return self._encoded[text]

    def _encode(self, text: Text) -> EncodedText:
        if text.path:
            return self._encode_other(text.path)
        if text.swap_share:
            return encode_texts(swap_words_in(self._words(text), text.swap_share, text.swap_seed), self.data.vocabulary)
        split = self.data.splits[text.split]
        unknown = self.data.vocabulary.unknown
        share = 0.0 if unknown is None else float((split.tokens == unknown).mean())
        return EncodedText(split.tokens, split.bytes_, share)

    def _encode_other(self, path: Path) -> EncodedText:
        encoded = encode_source(source_at(str(path)), self.data.vocabulary)
        if len(encoded.tokens) < 2:
            raise DataError(f"{path}: is too short; of one token or none there is nothing to predict")
        return encoded

    def _words(self, text: Text) -> Iterator[str]:
        corpus = data_set(self.opened.recipe.data)
        assert isinstance(corpus, TextCorpus)
        return corpus.text(text.split)

    def count(self, text: Text) -> int:
        """How many of its tokens are to be predicted."""
        there = len(self.encoded(text).tokens) - 1
        return min(there, self.asked.limit or there)

    def columns(self, text: Text) -> dict[str, Any]:
        """What was measured, of which weights."""
        return {
            "corpus": text.corpus,
            "split": "" if text.corpus else text.split,
            "swap_share": text.swap_share,
            "swap_seed": text.swap_seed if text.swap_share else "",
            "window": self.window,
            "stride": self.asked.stride,
            "asked": self.asked.limit or "all",
            "checkpoint": self.opened.checkpoint,
            "step": self.opened.step,
            "weights": self.weights,
        }

    def known(self, text: Text) -> dict[str, Any] | None:
        """The row of an earlier measurement; never of another corpus, whose file may be another now."""
        if self.asked.again or text.path:
            return None
        wanted = identity(self.columns(text))
        rows = read_rows(self.opened.run.folder / PERPLEXITY_CSV)
        return next((row for row in rows if identity(row) == wanted), None)

    def measure(self, text: Text, progress: Callable[[int], object]) -> dict[str, Any]:
        """The row of one text."""
        encoded, asked = self.encoded(text), self.count(text)
        started = time.perf_counter()
        found = surprise(
            self.opened.model,
            encoded.tokens[: asked + 1],
            length=self.window,
            stride=self.asked.stride,
            device=self.asked.device,
            progress=progress,
        )
        if line := note_evaluation(self.opened, text.name(), self.asked.limit):
            console.print(f"{self.opened.run.folder}  {text.name()}  {line}")
        return {**self.columns(text), **_numbers(found, encoded), "seconds": round(time.perf_counter() - started, 2)}


def _numbers(found: Surprise, encoded: EncodedText) -> dict[str, Any]:
    """Return a row's numbers; of part of a text the bytes are taken to be spread evenly over its tokens."""
    tokens = len(found.losses)
    return {
        "tokens": tokens,
        "loss": found.loss,
        "perplexity": found.perplexity,
        "bits_per_byte": found.bits_per_byte(encoded.bytes_ * tokens / len(encoded.tokens)),
        "top1": 100 * found.right.double().mean().item(),
        "top5": 100 * found.among_five.double().mean().item(),
        "unknown": encoded.unknown,
    }
