"""The models whose costs are measured, of recipes and decoders of GPT-2's base size, and what is done to them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim import Optimizer

from kattn_cli.attention import attention_classes
from kattn_cli.attention.options import all_options, build_attention, check_options
from kattn_cli.data import LoadedData
from kattn_cli.errors import DataError, RecipeError
from kattn_cli.experiment import recipes
from kattn_cli.experiment.build import build, layers_on, outline
from kattn_cli.models import AttentionModel
from kattn_cli.models.sequence_model import CausalDecoder
from kattn_cli.recipe.files import find_recipes
from kattn_cli.recipe.schema import Mechanism, Recipe
from kattn_cli.recipe.train import Train
from kattn_cli.tasks import objective_of
from kattn_cli.training.feed import SyntheticSplit
from kattn_cli.training.loop import Hooks, Trainer
from kattn_cli.training.step import autocast, build_optimizer, grad_scaler

DECODER = "decoder/"
"""A reference that begins so is no recipe: the mechanism of a decoder follows."""
DEPTH, DIM, HEADS, VOCABULARY = 12, 768, 12, 50_257
"""Of GPT-2's base model."""
LENGTHS = (4096, 8192)
"""Of decoders, where none is asked for: as in the ToST paper's Table 4 (right)."""


@dataclass(frozen=True)
class RecipeModel:
    """The model of a recipe, for inputs of its data set's size; the data set need not be there.

    ``attention``: the mechanism that gives it its colour. ``tokens``: how many its blocks see.
    """

    name: str
    attention: str
    tokens: int
    recipe: Recipe
    data: LoadedData

    def build(self) -> nn.Module:
        """Return the model, freshly initialised."""
        return build(self.recipe, self.data)

    def sample(self, batch: int, device: torch.device | str = "cpu") -> Any:
        """Return random inputs."""
        return self.data.sample(batch, device)

    def training_step(self, model: Any, batch: int, precision: str) -> TrainingStep:
        """Return a step of the recipe's training on one synthetic batch, ready to be repeated."""
        fixed = SyntheticSplit(self.sample(batch, model.device), self.data.targets(batch, model.device), batch)
        outlined: Any = self.data
        data = replace(outlined, splits={"train": fixed, "validation": fixed})
        changes = {"batch_size": batch, "accumulate": 1, "precision": precision}
        return TrainingStep(model, data, self.recipe.train.model_copy(update=changes), self.recipe.seed)


@dataclass(frozen=True)
class DecoderModel:
    """A decoder of GPT-2's base size with one mechanism throughout, for texts of ``tokens`` tokens."""

    name: str
    attention: str
    tokens: int
    mechanism: Mechanism

    def build(self) -> nn.Module:
        """Return the model, freshly initialised."""
        return CausalDecoder([self.layer() for _ in range(DEPTH)], dim=DIM, seq_len=self.tokens, vocabulary=VOCABULARY)

    def layer(self) -> nn.Module:
        """Return the attention of one layer."""
        sizes = {"dim": DIM, "heads": HEADS, "seq_len": self.tokens}
        return build_attention(self.mechanism.name, self.mechanism.options, **sizes, causal=True)

    def sample(self, batch: int, device: torch.device | str = "cpu") -> Tensor:
        """Return random token ids."""
        return torch.randint(VOCABULARY, (batch, self.tokens), device=device)

    def training_step(self, model: nn.Module, batch: int, precision: str) -> DecoderStep:
        """Return a step with AdamW, ready to be repeated on texts of any batch."""
        return DecoderStep(model, Train().model_copy(update={"precision": precision}))


Measured = RecipeModel | DecoderModel


def measured_models(references: Sequence[str], lengths: Sequence[int], overrides: Sequence[str] = ()) -> list[Measured]:
    """Return the models that ``references`` name: recipes, folders of them, and decoders such as ``decoder/tssa``.

    Args:
        overrides: of the recipes.
        lengths: texts that decoders are measured on, :data:`LENGTHS` by default; a recipe has its own number of tokens.

    Raises:
        RecipeError: if there is none, or one cannot be built.
    """
    if not references:
        raise RecipeError("No recipe was named. For example: kattn model-costs quickstart/softmax quickstart/rpc")
    chosen: dict[tuple[str, int], Measured] = {}
    for reference in references:
        for model in _models(reference, lengths or LENGTHS, overrides):
            if (model.name, model.tokens) in chosen and model != chosen[model.name, model.tokens]:
                raise RecipeError(f"{reference}: another recipe is named {model.name} too; rename one")
            chosen[model.name, model.tokens] = model
    return list(chosen.values())


def _models(reference: str, lengths: Sequence[int], overrides: Sequence[str]) -> Iterator[Measured]:
    if reference.startswith(DECODER) and not Path(reference).exists():
        mechanism = _decoding_mechanism(reference.removeprefix(DECODER))
        yield from (DecoderModel(reference, mechanism.name, n, mechanism) for n in sorted(set(lengths)))
        return
    for path in find_recipes(reference):
        recipe = recipes.load(path, overrides, weights=False, data=False)
        try:
            data = outline(recipe)
        except DataError as error:
            raise RecipeError(f"{recipe.name}: {error}") from None
        yield RecipeModel(recipe.name, recipe.attention.characteristic, layers_on(recipe, data).seq_len, recipe, data)


def _decoding_mechanism(name: str) -> Mechanism:
    """Return a mechanism with its defaults, Primal-Attention in the one form that is causal."""
    given = {"projection": "data-independent"} if name == "primal" else {}
    if faults := check_options(name, given, ()):
        raise RecipeError(f"{DECODER}{name}: {faults[0].message}")
    mechanism = Mechanism(name=name, **all_options(name, given))
    try:
        with torch.device("meta"):
            DecoderModel(name, name, 8, mechanism).layer()
    except RecipeError as error:
        causal = ", ".join(known for known, one in attention_classes().items() if one.supports_causal)
        raise RecipeError(f"{DECODER}{name}: {error}; these are causal: {causal}") from None
    return mechanism


class Inference(nn.Module):
    """The model in ``eval`` mode, without gradients."""

    def __init__(self, model: nn.Module, precision: str) -> None:
        super().__init__()
        self.model, self.precision = model.eval(), precision

    @torch.no_grad()
    def forward(self, inputs: Any) -> Tensor:
        with autocast(self.precision, next(self.model.parameters()).device):
            return self.model(inputs)

    def held(self) -> int:
        """Return the bytes of the weights and buffers."""
        return _bytes(self.model.state_dict().values())


class TrainingStep(nn.Module):
    """One step of a recipe's training on the same synthetic batch: forward, loss, backward, optimizer.

    Mixing, auxiliary losses, clipping and the averaged weights are as ``train`` says; augmentation is left out.
    """

    def __init__(self, model: AttentionModel, data: LoadedData, train: Train, seed: int) -> None:
        super().__init__()
        hooks = Hooks(lambda update: None, lambda rows: None, lambda which, weights, state: None)
        self.trainer = Trainer(model.train(), data, objective_of(data), train, seed, hooks)
        self.shards = next(iter(self.trainer.feed.shards(self.trainer.plan.batches(0))))

    def forward(self, inputs: Any) -> None:
        with torch.enable_grad():
            self.trainer.step(self.shards, self.trainer.settings.lr)
        self.trainer.optimizer.zero_grad()

    def held(self) -> int:
        """Return the bytes of the weights, AdamW's moments and the averaged weights."""
        average = self.trainer.ema.module.state_dict().values() if self.trainer.ema else ()
        weights = self.trainer.model.state_dict().values()
        return _bytes(weights) + _bytes(average) + _bytes(_moments(self.trainer.optimizer))


class DecoderStep(nn.Module):
    """One step of training a decoder to predict the next token: forward, cross-entropy, backward, AdamW."""

    def __init__(self, model: nn.Module, train: Train) -> None:
        super().__init__()
        self.model, self.train_settings = model.train(), train
        self.optimizer = build_optimizer(model, train)

    def forward(self, tokens: Tensor) -> None:
        device, precision = tokens.device, self.train_settings.precision
        scaler = grad_scaler(precision, device)
        with torch.enable_grad(), autocast(precision, device):
            logits = self.model(tokens)
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())
            modules: list[Any] = list(self.model.modules())
            loss = loss + sum(each.auxiliary_loss() for each in modules if hasattr(each, "auxiliary_loss"))
        scaler.scale(loss).backward()
        scaler.step(self.optimizer)
        scaler.update()
        self.optimizer.zero_grad()

    def held(self) -> int:
        """Return the bytes of the weights and AdamW's moments."""
        return _bytes(self.model.state_dict().values()) + _bytes(_moments(self.optimizer))


def _moments(optimizer: Optimizer) -> Iterable[Tensor]:
    return (value for state in optimizer.state.values() for value in state.values() if isinstance(value, Tensor))


def _bytes(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)
