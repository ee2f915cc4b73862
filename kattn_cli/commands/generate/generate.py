"""``kattn generate``: a trained language model goes on with a prompt; its corpus need not be there."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch

from kattn_cli.data import data_set
from kattn_cli.data.dataset import Corpus
from kattn_cli.data.vocabulary import VOCABULARY_FILE, Vocabulary, read_vocabulary
from kattn_cli.data.vocabulary.words import UNKNOWN, Words
from kattn_cli.errors import CheckpointError, DataError, RunError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.run import which_weights
from kattn_cli.models import LanguageModel, build_language_model
from kattn_cli.models.generation import decodes, generate, reread
from kattn_cli.recipe.model import Decoder
from kattn_cli.runs.find import find_runs
from kattn_cli.runs.run import RECIPE, Run
from kattn_cli.runs.weights import weights_path
from kattn_cli.training.checkpoint import load_weights
from kattn_cli.training.opened import identity

Say = Callable[[str], object]
_INCOMPLETE = "\ufffd"


@dataclass(frozen=True)
class Speaker:
    """A run's language model in ``eval`` mode on a device, and what its tokens stand for."""

    folder: Path
    model: LanguageModel
    vocabulary: Vocabulary
    context: int


@dataclass(frozen=True)
class Sampling:
    """How ``tokens`` are chosen; see :func:`~kattn_cli.models.generation.choose`."""

    tokens: int
    temperature: float
    top_k: int | None
    seed: int


def one_run(results: Path, reference: str | None) -> Run:
    """Return the run that ``reference`` means, by default the newest.

    Raises:
        RunError: if it means none or several.
    """
    found = find_runs(results, [reference] if reference else [])
    if len(found) > 1:
        raise RunError(f"{reference}: means {len(found)} runs; give one of them, such as {found[0].folder}")
    return found[0]


def open_speaker(run: Run, device: torch.device, checkpoint: str, tell: Say) -> Speaker:
    """Return a run's language model; ``tell`` gets a message if other weights than those asked for are used.

    Raises:
        RunError: if the run is no language model.
        RecipeError, DataError, CheckpointError: if recipe, vocabulary or weights cannot be used, in one line.
    """
    recipe = recipes.load(run.folder / RECIPE, weights=False, data=False)
    source = data_set(recipe.data)
    if not isinstance(recipe.model, Decoder) or not isinstance(source, Corpus):
        what = f"{recipe.model.name} on {recipe.data.name}"
        raise RunError(f"{run.folder}: is no language model but {what}; generating needs a decoder on running text")
    checkpoint = which_weights(run, checkpoint, tell)
    vocabulary = _vocabulary(run)
    model = build_language_model(recipe.model, recipe.attention, seq_len=source.context, vocabulary=vocabulary.size)
    try:
        load_weights(weights_path(run.folder, checkpoint), model, identity(recipe))
    except CheckpointError as error:
        if "embed.weight is" not in str(error):
            raise
        raise CheckpointError(
            f"{error}; {VOCABULARY_FILE} has {vocabulary.size:,} tokens, so it is of another run"
        ) from None
    return Speaker(run.folder, model.to(device).eval(), vocabulary, source.context)


def speak(speaker: Speaker, prompt: str, sampling: Sampling, write: Say, tell: Say) -> None:
    """Write the prompt and what follows it, each piece when it is there; tell the speed at the end.

    An empty prompt begins after a line end.

    Raises:
        DataError: before anything is written, if the prompt cannot be read.
    """
    own = speaker.vocabulary.encode(prompt).tolist()
    tokens = own or _line_end(speaker)
    _check(speaker, prompt, tokens)
    if len(tokens) + sampling.tokens - 1 > speaker.context:
        last = reread(speaker.context)
        tell(f"Past the model's context, {speaker.context:,} tokens, it reads on from the last {last:,} of them.")
    text = TextStream(speaker.vocabulary)
    began = text.add(tokens)
    following = generate(
        speaker.model,
        tokens,
        sampling.tokens,
        temperature=sampling.temperature,
        top_k=sampling.top_k,
        generator=np.random.default_rng(sampling.seed),
    )
    write(began if own else "")
    start = time.perf_counter()
    try:
        for token in following:
            write(text.add([token]))
    finally:
        write(text.rest() + "\n")
    speed = sampling.tokens / (time.perf_counter() - start)
    how = "" if decodes(speaker.model) else ", each read from the beginning: a mechanism here keeps no state"
    tell(f"{sampling.tokens:,} tokens, {speed:,.1f} tokens/s{how}")


class TextStream:
    """The text of tokens that come one after another.

    A character of which only some bytes are there, at the end, is held back until it is whole.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        self._vocabulary = vocabulary
        self._kept: list[int] = []
        self._given = 0

    def add(self, tokens: Sequence[int]) -> str:
        """Return what there is to show since the last time."""
        self._kept += tokens
        text = self._text()
        whole = text.removesuffix(_INCOMPLETE)
        fresh, self._given = whole[self._given :], len(whole)
        if whole == text:  # the next token's text depends on this one at most, as a word's space does
            self._kept = self._kept[-1:]
            self._given = len(self._text())
        return fresh

    def rest(self) -> str:
        """Return what was held back and never made whole."""
        return self._text()[self._given :]

    def _text(self) -> str:
        return self._vocabulary.decode(np.array(self._kept, dtype=np.int64))


def _vocabulary(run: Run) -> Vocabulary:
    path = run.folder / VOCABULARY_FILE
    if not path.is_file():
        raise RunError(f"{run.folder}: has no {VOCABULARY_FILE}, which training writes there; train it again")
    return read_vocabulary(str(path))


def _line_end(speaker: Speaker) -> list[int]:
    tokens = speaker.vocabulary.encode("\n").tolist()
    if speaker.vocabulary.unknown in tokens:
        raise DataError("--prompt: is empty, and the run's vocabulary has no line end to begin after; give some text")
    return tokens


def _check(speaker: Speaker, prompt: str, tokens: Sequence[int]) -> None:
    """Require that the model has learnt what stands in the prompt, and can see all of it."""
    vocabulary, words = speaker.vocabulary, isinstance(speaker.vocabulary, Words)
    if vocabulary.unknown in tokens:
        pieces = dict.fromkeys(prompt.split() if words else prompt)
        lacking = [one for one in pieces if one != UNKNOWN and vocabulary.unknown in vocabulary.encode(one).tolist()]
        if lacking:
            listed = ", ".join(json.dumps(one, ensure_ascii=False) for one in lacking[:3])
            instead = f"leave it out, or write {UNKNOWN}" if words else "leave it out"
            raise DataError(f"--prompt: the vocabulary of {speaker.folder} has no {listed}; {instead}")
    if len(tokens) > speaker.context:
        raise DataError(
            f"--prompt: has {len(tokens):,} tokens, and {speaker.folder} sees {speaker.context:,} at most; shorten it"
        )
