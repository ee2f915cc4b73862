"""What ``kattn complexity --model`` measures: the classifiers of recipes, and decoders of GPT-2's base size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from kattn_cli.attention import ATTENTIONS
from kattn_cli.attention.options import all_options, build_attention, check_options
from kattn_cli.commands import recipes
from kattn_cli.commands.data_section import facts_of, image_size
from kattn_cli.commands.loading import build
from kattn_cli.commands.model_passes import ClassifierStep, DecoderStep
from kattn_cli.data import ImageData, MemorySplit, data_set
from kattn_cli.errors import RecipeError
from kattn_cli.models import attention_layers
from kattn_cli.models.sequence import CausalDecoder
from kattn_cli.recipe import Mechanism, Recipe
from kattn_cli.recipe_data import ImageSection
from kattn_cli.recipe_files import find_recipes
from kattn_cli.recipe_model import Decoder, Encoder
from kattn_cli.recipe_train import Train

DECODER = "decoder/"
"""A reference that begins so is no recipe: the mechanism of a decoder follows."""
DEPTH, DIM, HEADS, VOCABULARY = 12, 768, 12, 50_257
"""Of GPT-2's base model."""
LENGTHS = (4096, 8192)
"""Of decoders, where none is asked for: as in the ToST paper's Table 4 (right)."""


@dataclass(frozen=True)
class RecipeModel:
    """The classifier of a recipe, for images of its data set's size, which need not be there.

    ``attention`` gives it its colour; ``tokens``: how many its blocks see.
    """

    name: str
    attention: str
    tokens: int
    recipe: Recipe
    data: ImageData

    def build(self) -> nn.Module:
        """The model, freshly initialised."""
        return build(self.recipe, self.data)

    def sample(self, batch: int) -> Tensor:
        """Random pixels in [0, 1]."""
        return torch.rand(batch, self.data.channels, self.data.image_size, self.data.image_size)

    def training_step(self, model: Any, batch: int, precision: str) -> ClassifierStep:
        """A step of the recipe's training on one synthetic batch, ready to be repeated."""
        images = MemorySplit(self.sample(batch), torch.randint(self.data.classes, (batch,)))
        data = replace(self.data, splits={"train": images, "validation": images})
        changes = {"batch_size": batch, "accumulate": 1, "precision": precision}
        return ClassifierStep(model, data, self.recipe.train.model_copy(update=changes), self.recipe.seed)


@dataclass(frozen=True)
class DecoderModel:
    """A decoder of GPT-2's base size with one mechanism throughout, for texts of ``tokens`` tokens."""

    name: str
    attention: str
    tokens: int
    mechanism: Mechanism

    def build(self) -> nn.Module:
        """The model, freshly initialised."""
        return CausalDecoder([self.layer() for _ in range(DEPTH)], dim=DIM, seq_len=self.tokens, vocabulary=VOCABULARY)

    def layer(self) -> nn.Module:
        """The attention of one layer."""
        sizes = {"dim": DIM, "heads": HEADS, "seq_len": self.tokens}
        return build_attention(self.mechanism.name, self.mechanism.options, **sizes, causal=True)

    def sample(self, batch: int) -> Tensor:
        """Random token ids."""
        return torch.randint(VOCABULARY, (batch, self.tokens))

    def training_step(self, model: nn.Module, batch: int, precision: str) -> DecoderStep:
        """A step with AdamW, ready to be repeated on texts of any batch."""
        return DecoderStep(model, Train().model_copy(update={"precision": precision}))


Measured = RecipeModel | DecoderModel


def measured_models(references: Sequence[str], lengths: Sequence[int]) -> list[Measured]:
    """The models that ``references`` name: recipes, folders of them, and decoders such as ``decoder/tssa``.

    Args:
        lengths: texts that decoders are measured on, :data:`LENGTHS` by default; a recipe has its own number of tokens.

    Raises:
        RecipeError: if there is none, or one cannot be built.
    """
    if not references:
        raise RecipeError("--model: name recipes (imagenet/vit_tiny) or decoders (decoder/softmax decoder/tssa)")
    chosen: dict[tuple[str, int], Measured] = {}
    for reference in references:
        for model in _models(reference, lengths or LENGTHS):
            if (model.name, model.tokens) in chosen and model != chosen[model.name, model.tokens]:
                raise RecipeError(f"--model {reference}: another recipe is named {model.name} too; rename one")
            chosen[model.name, model.tokens] = model
    return list(chosen.values())


def _models(reference: str, lengths: Sequence[int]) -> Iterator[Measured]:
    if reference.startswith(DECODER) and not Path(reference).exists():
        mechanism = _decoding_mechanism(reference.removeprefix(DECODER))
        yield from (DecoderModel(reference, mechanism.name, n, mechanism) for n in sorted(set(lengths)))
        return
    for path in find_recipes(reference):
        recipe = recipes.load(path, weights=False, data=False)
        if isinstance(recipe.model, Encoder | Decoder):
            raise RecipeError(f"--model {reference}: reads sequences; measure images' recipes, or decoder/<mechanism>")
        data = _facts(recipe)
        tokens = attention_layers(recipe.model, data.image_size).seq_len
        yield RecipeModel(recipe.name, recipe.attention.characteristic, tokens, recipe, data)


def _decoding_mechanism(name: str) -> Mechanism:
    """With its defaults; Primal-Attention in the one form that is causal."""
    given = {"projection": "data-independent"} if name == "primal" else {}
    if faults := check_options(name, given, ()):
        raise RecipeError(f"--model {DECODER}{name}: {faults[0].message}")
    mechanism = Mechanism(name=name, **all_options(name, given))
    try:
        with torch.device("meta"):
            DecoderModel(name, name, 8, mechanism).layer()
    except RecipeError as error:
        causal = ", ".join(known for known, one in ATTENTIONS.items() if one.supports_causal)
        raise RecipeError(f"--model {DECODER}{name}: {error}; these are causal: {causal}") from None
    return mechanism


def _facts(recipe: Recipe) -> ImageData:
    """What a recipe's model must know of its data, without the images.

    Raises:
        RecipeError: if only the images could tell.
    """
    given, size = recipe.data, image_size(recipe.data)
    assert isinstance(given, ImageSection)
    facts = facts_of(data_set(given))
    classes, channels = (facts.classes, facts.channels) if facts else (given.classes or 0, 3)
    channels = given.channels or channels
    if not (classes and size):
        missing = "data.classes" if size else "data.image_size"
        raise RecipeError(f"{recipe.name}: give {missing}, since its images are not here to tell")
    half = (0.5,) * channels
    return ImageData(given.name, classes, channels, size, mean=half, std=half, splits={})
