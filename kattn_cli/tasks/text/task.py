"""Running text, of which a language model tells the next token."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kattn_cli.data.corpora import TextCorpus
from kattn_cli.data.dataset import Corpus
from kattn_cli.data.text import TextData
from kattn_cli.data.vocabulary import VOCABULARY_FILE, Vocabulary, read_vocabulary
from kattn_cli.errors import DataError
from kattn_cli.models import AttentionModel, Layers, build_language_model, sequence_layers
from kattn_cli.recipe.data import SequenceSection
from kattn_cli.recipe.model import Decoder, Encoder
from kattn_cli.recipe.schema import Attention, Recipe
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import LOSS
from kattn_cli.tasks.task import OF_SPLITS, Asked, Task, named_paths
from kattn_cli.tasks.text import perplexity
from kattn_cli.tasks.text.objective import Language
from kattn_cli.tasks.text.report import measure_and_print


class Text(Task[Corpus, SequenceSection, TextData]):
    """The next token of a text."""

    reads = "text"
    holds = "text"
    short = "seq"
    measure = LOSS
    section = SequenceSection
    models = (Decoder,)
    options = OF_SPLITS | {"window", "stride", "corpus"}
    attack_option = "--word-swap"

    def load(self, source: Corpus, section: SequenceSection) -> TextData:
        """See :class:`Task`."""
        vocabulary, splits = source.load()
        if section.choose_on == "test":
            splits = {**splits, "validation": splits["test"]}
        return TextData(section.name, vocabulary, source.context, splits, section.choose_on)

    def outline(self, source: Corpus, section: SequenceSection, folder: Path | None) -> TextData:
        """See :class:`Task`; without the run's own vocabulary it takes the text to tell its size."""
        if folder and (folder / VOCABULARY_FILE).is_file():
            vocabulary = read_vocabulary(str(folder / VOCABULARY_FILE))
            return TextData(section.name, vocabulary, source.context, splits={})
        if missing := source.missing():
            beside = ", and its vocabulary not beside the run" if folder else ""
            raise DataError(f"the text of {section.name} is not here{beside} ({missing})")
        return self.load(source, section)

    def shape(self, data: TextData) -> str:
        """See :class:`Task`."""
        return f"windows of {data.context:,} tokens, a vocabulary of {data.vocabulary.size:,}"

    def length(self, source: Corpus, section: SequenceSection) -> int | None:
        """Return how many tokens a model sees at most."""
        return source.context

    def length_of(self, data: TextData) -> int:
        """Return how many tokens a model sees at most."""
        return data.context

    def layers(self, model: Any, length: int) -> Layers:
        """See :class:`Task`."""
        return sequence_layers(model, length)

    def build(self, recipe: Recipe, data: TextData) -> AttentionModel:
        """See :class:`Task`."""
        assert isinstance(recipe.model, Decoder)
        return build_language_model(
            recipe.model, recipe.attention, seq_len=data.context, vocabulary=data.vocabulary.size
        )

    def objective(self, data: TextData) -> Language:
        """See :class:`Task`."""
        return Language(data.context, data.classes)

    def evaluate(self, runs: Sequence[Run], asked: Asked) -> None:
        """Measure the perplexity of a split and of other texts, over sliding windows."""
        corpora = named_paths("--corpus", asked.corpus, "ptb=data/ptb.test.txt")
        others = [perplexity.Text(corpus=name, path=path) for name, path in corpora]
        measure_and_print(runs, [perplexity.Text(split=asked.split), *others], asked)

    def facts(self, source: Corpus) -> None:
        """Return nothing: what there is to know takes the text."""

    def data_faults(self, section: SequenceSection, source: Corpus, facts: None) -> Iterable[Fault]:
        """See :class:`Task`."""
        if section.classes:
            yield Fault(("data", "classes"), f"{section.name} is running text, which has none; leave this out")
        if section.validation:
            why = f"{section.name} is running text, held out by its own rule; leave this out"
            yield Fault(("data", "validation"), why)

    def model_faults(
        self, model: Any, attention: Attention | None, source: Corpus | None, section: SequenceSection | None
    ) -> Iterable[Fault]:
        """Yield an encoder, which sees all tokens at once."""
        if isinstance(model, Encoder) and section:
            why = f"encoder classifies, and {section.name} is running text; take decoder"
            yield Fault(("model", "name"), why)

    def causal(self, model: Any) -> str:
        """See :class:`Task`."""
        return "a decoder" if isinstance(model, Decoder) else ""

    def vocabulary(self, data: TextData) -> Vocabulary | None:
        """See :class:`Task`."""
        return data.vocabulary

    def contents(self, source: Corpus, section: SequenceSection) -> str:
        """See :class:`Task`; a corpus may come without a text to train on."""
        if isinstance(source, TextCorpus) and "train" not in source.sources():
            return f"only {', '.join(source.sources())}, for kattn eval --corpus"
        vocabulary, texts = source.load()
        counts = ", ".join(f"{split} {len(text.tokens):,}" for split, text in texts.items())
        return f"{counts} tokens, of {vocabulary.size:,}"
