"""Series and sequences of tokens that are classified."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from kattn_cli.data.dataset import SequenceDataSet
from kattn_cli.data.holdout import check_labels, with_validation
from kattn_cli.data.sequences import SequenceData, channel_moments
from kattn_cli.data.vocabulary import Vocabulary
from kattn_cli.errors import stoppable
from kattn_cli.models import AttentionModel, Layers, build_sequence_classifier, sequence_layers
from kattn_cli.recipe.data import SequenceSection
from kattn_cli.recipe.model import Decoder, Encoder
from kattn_cli.recipe.schema import Attention, Recipe
from kattn_cli.recipe.strict_yaml import Fault
from kattn_cli.runs.find import figures_folder
from kattn_cli.runs.run import Run
from kattn_cli.tables.measures import TOP1
from kattn_cli.tasks.images.objective import Classification
from kattn_cli.tasks.images.report import evaluate_and_report
from kattn_cli.tasks.task import OF_CLASSES, OF_SPLITS, Asked, Task, counted


class Sequences(Task[SequenceDataSet, SequenceSection, SequenceData]):
    """One of several classes for each sequence, or for each of its last tokens, which are queries."""

    reads = "sequences"
    holds = "sequences"
    short = "seq"
    measure = TOP1
    section = SequenceSection
    models = (Encoder, Decoder)
    options = OF_SPLITS | OF_CLASSES
    generated = True

    def load(self, source: SequenceDataSet, section: SequenceSection) -> SequenceData:
        """See :class:`Task`."""
        found, facts = source.load(), source.facts()
        check_labels(section.name, found, facts.classes, SequenceData.unit)
        splits = with_validation(found, section)
        mean, std = channel_moments(splits["train"]) if facts.channels else ((), ())
        return SequenceData(
            name=section.name,
            classes=facts.classes,
            seq_len=facts.seq_len,
            channels=facts.channels,
            vocabulary_size=facts.vocabulary,
            pairs=facts.pairs,
            queries=facts.queries,
            mean=mean,
            std=std,
            splits=splits,
            chosen_on=section.choose_on,
            vocabulary=source.vocabulary(),
        )

    def outline(self, source: SequenceDataSet, section: SequenceSection, folder: Path | None) -> SequenceData:
        """See :class:`Task`."""
        facts = source.facts()
        return SequenceData(
            name=section.name,
            classes=facts.classes,
            seq_len=facts.seq_len,
            channels=facts.channels,
            vocabulary_size=facts.vocabulary,
            pairs=facts.pairs,
            queries=facts.queries,
            mean=(0.0,) * facts.channels,
            std=(1.0,) * facts.channels,
            splits={},
        )

    def shape(self, data: SequenceData) -> str:
        """See :class:`Task`."""
        of = f"{data.channels} channels" if data.channels else f"a vocabulary of {data.vocabulary_size:,}"
        each = f" for each of the last {data.queries} tokens" if data.queries else ""
        return f"{'two of ' if data.pairs else ''}up to {data.seq_len:,} long, {of}, {data.classes} classes{each}"

    def length(self, source: SequenceDataSet, section: SequenceSection) -> int | None:
        """Return the tokens of the longest sequence."""
        facts = self.known_facts(source)
        return facts.seq_len if facts else None

    def length_of(self, data: SequenceData) -> int:
        """Return the tokens of the longest sequence."""
        return data.seq_len

    def layers(self, model: Any, length: int) -> Layers:
        """See :class:`Task`."""
        return sequence_layers(model, length)

    def build(self, recipe: Recipe, data: SequenceData) -> AttentionModel:
        """See :class:`Task`."""
        assert isinstance(recipe.model, Encoder | Decoder)
        return build_sequence_classifier(
            recipe.model,
            recipe.attention,
            seq_len=data.seq_len,
            classes=data.classes,
            channels=data.channels,
            vocabulary=data.vocabulary_size,
            pairs=data.pairs,
            queries=data.queries,
            mean=data.mean,
            std=data.std,
        )

    def objective(self, data: SequenceData) -> Classification:
        """See :class:`Task`."""
        return Classification()

    def evaluate(self, runs: Sequence[Run], asked: Asked) -> None:
        """Measure accuracy, loss and calibration."""
        with stoppable("what was measured so far is in each run's eval.csv; the same command goes on from there"):
            evaluate_and_report(runs, asked, figures=figures_folder(asked.results, runs))

    def model_faults(
        self,
        model: Any,
        attention: Attention | None,
        source: SequenceDataSet | None,
        section: SequenceSection | None,
    ) -> Iterable[Fault]:
        """Yield a decoder for what is no single sequence of tokens."""
        facts = self.known_facts(source) if source else None
        if isinstance(model, Decoder) and facts and (facts.channels or facts.pairs):
            kind = "pairs of sequences" if facts.pairs else "series of numbers"
            name = section.name if section else ""
            why = f"decoder reads tokens one after the other, and {name} holds {kind}; take encoder"
            yield Fault(("model", "name"), why)

    def causal(self, model: Any) -> str:
        """See :class:`Task`."""
        return "a decoder" if isinstance(model, Decoder) else ""

    def vocabulary(self, data: SequenceData) -> Vocabulary | None:
        """See :class:`Task`: of texts."""
        return data.vocabulary

    def contents(self, source: SequenceDataSet, section: SequenceSection) -> str:
        """See :class:`Task`."""
        return f"{counted(source.load())} {SequenceData.unit}, {source.facts().classes} classes"
