"""Models: a backbone with any attention, behind the normalisation of its data."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from kattn_cli.models.classifier import Backbone, Classifier
from kattn_cli.models.decision_transformer import build_decision_transformer
from kattn_cli.models.layers import Layers, attention_layers, sequence_layers, trajectory_layers
from kattn_cli.models.model import AttentionModel, auxiliary_loss
from kattn_cli.models.segmentation_model import build_segmenter
from kattn_cli.models.sequence_model import (
    CausalDecoder,
    DecodingClassifier,
    LanguageModel,
    SequenceClassifier,
    SequenceEncoder,
)
from kattn_cli.models.tost import TokenStatisticsTransformer
from kattn_cli.models.vit import build_timm, build_vit, replace_attention
from kattn_cli.recipe.model import Decoder, Encoder, ImageModel, TimmModel, Tost
from kattn_cli.recipe.schema import Attention

__all__ = [
    "AttentionModel",
    "Backbone",
    "Classifier",
    "LanguageModel",
    "Layers",
    "SequenceClassifier",
    "attention_layers",
    "auxiliary_loss",
    "build_decision_transformer",
    "build_language_model",
    "build_model",
    "build_segmenter",
    "build_sequence_classifier",
    "sequence_layers",
    "trajectory_layers",
]


def build_model(
    model: ImageModel,
    attention: Attention,
    *,
    image_size: int,
    channels: int,
    classes: int,
    mean: Sequence[float],
    std: Sequence[float],
) -> Classifier:
    """Return the backbone that ``model`` names with the mechanisms that ``attention`` names, layer by layer."""
    layers = attention_layers(model, image_size)
    chosen = attention.per_layer(layers.depth)
    data: dict[str, Any] = {"image_size": image_size, "channels": channels, "classes": classes}
    if isinstance(model, Tost):
        sizes = model.model_dump(exclude={"name", "depth"})
        backbone = TokenStatisticsTransformer([layers.build(one) for one in chosen], **data, **sizes)
        return Classifier(backbone, mean, std)
    if isinstance(model, TimmModel):
        vit = build_timm(
            model.name, img_size=image_size, in_chans=channels, num_classes=classes, drop_path_rate=model.drop_path
        )
    else:
        vit = build_vit(**data, **model.model_dump(exclude={"name", "causal"}))
    replace_attention(vit, [layers.build(one) for one in chosen])
    return Classifier(vit, mean, std)


def build_sequence_classifier(
    model: Encoder | Decoder,
    attention: Attention,
    *,
    seq_len: int,
    classes: int,
    channels: int,
    vocabulary: int,
    pairs: bool,
    queries: int = 0,
    mean: Sequence[float],
    std: Sequence[float],
) -> SequenceClassifier:
    """Return an encoder, or a decoder that classifies by its last token.

    Args:
        channels: of a series, which is normalised by ``mean`` and ``std``; 0 for tokens.
        vocabulary: how many tokens there are; 0 for a series.
        pairs: whether two sequences are classified together, which an encoder does.
        queries: how many last tokens are classified one by one; 0 for one class a sequence.
    """
    mechanisms = _mechanisms(model, attention, seq_len)
    sizes: dict[str, Any] = {"seq_len": seq_len, **model.model_dump(exclude={"name", "depth", "heads"})}
    if isinstance(model, Decoder):
        backbone: nn.Module = DecodingClassifier(
            mechanisms, vocabulary=vocabulary, classes=classes, queries=queries, **sizes
        )
        return SequenceClassifier(backbone)
    embed = nn.Linear(channels, model.dim) if channels else nn.Embedding(vocabulary, model.dim)
    backbone = SequenceEncoder(mechanisms, embed, classes=classes, pairs=pairs, queries=queries, **sizes)
    return SequenceClassifier(backbone, mean, std) if channels else SequenceClassifier(backbone)


def build_language_model(model: Decoder, attention: Attention, *, seq_len: int, vocabulary: int) -> LanguageModel:
    """Return a decoder that predicts the next of ``vocabulary`` tokens, for texts of up to ``seq_len``."""
    sizes: dict[str, Any] = {"seq_len": seq_len, **model.model_dump(exclude={"name", "depth", "heads"})}
    return LanguageModel(CausalDecoder(_mechanisms(model, attention, seq_len), vocabulary=vocabulary, **sizes))


def _mechanisms(model: Encoder | Decoder, attention: Attention, seq_len: int) -> list[nn.Module]:
    layers = sequence_layers(model, seq_len)
    return [layers.build(one) for one in attention.per_layer(layers.depth)]
