"""The model of a recipe, for its data."""

from __future__ import annotations

from kattn_cli.data import ImageData, LoadedData, SegmentationData, SequenceData, TextData, TrajectoryData
from kattn_cli.models import (
    AttentionModel,
    Layers,
    attention_layers,
    build_decision_transformer,
    build_language_model,
    build_model,
    build_segmenter,
    build_sequence_classifier,
    sequence_layers,
    trajectory_layers,
)
from kattn_cli.recipe.model import DecisionTransformer, Decoder, Encoder, Segmenter, TimmModel, Tost, Vit
from kattn_cli.recipe.schema import Recipe


def build(recipe: Recipe, data: LoadedData) -> AttentionModel:
    """The recipe's model, freshly initialised."""
    model, attention = recipe.model, recipe.attention
    if isinstance(data, ImageData | SegmentationData):
        images = {name: getattr(data, name) for name in ("image_size", "channels", "classes", "mean", "std")}
        if isinstance(model, Segmenter):
            return build_segmenter(model, attention, **images)
        assert isinstance(model, Vit | Tost | TimmModel)
        return build_model(model, attention, **images)
    if isinstance(data, TrajectoryData):
        assert isinstance(model, DecisionTransformer)
        return build_decision_transformer(
            model,
            attention,
            states=data.states,
            actions=data.actions,
            context=data.context,
            longest=data.longest,
            mean=data.mean,
            std=data.std,
            return_scale=data.return_scale,
            action_low=data.action_low,
            action_high=data.action_high,
        )
    assert isinstance(model, Encoder | Decoder)
    if isinstance(data, TextData):
        assert isinstance(model, Decoder)
        return build_language_model(model, attention, seq_len=data.context, vocabulary=data.vocabulary.size)
    return build_sequence_classifier(
        model,
        attention,
        seq_len=data.seq_len,
        classes=data.classes,
        channels=data.channels,
        vocabulary=data.vocabulary_size,
        pairs=data.pairs,
        mean=data.mean,
        std=data.std,
    )


def layers_on(recipe: Recipe, data: LoadedData) -> Layers:
    """What the mechanisms of the recipe's model are built for on ``data``."""
    length = data.image_size if isinstance(data, ImageData | SegmentationData) else _length(data)
    return layers_of_length(recipe, length)


def layers_of_length(recipe: Recipe, length: int) -> Layers:
    """The same, where only the ``length`` is known: the size of images, steps of a window, or tokens of a sequence."""
    model = recipe.model
    if isinstance(model, DecisionTransformer):
        return trajectory_layers(model, length)
    if isinstance(model, Encoder | Decoder):
        return sequence_layers(model, length)
    return attention_layers(model, length)


def _length(data: SequenceData | TextData | TrajectoryData) -> int:
    return data.seq_len if isinstance(data, SequenceData) else data.context
