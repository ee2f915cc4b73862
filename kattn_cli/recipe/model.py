"""The model section of a recipe: models of one's own size, presets by the names of their papers, and timm's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Annotated, Any, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from kattn_cli.errors import did_you_mean
from kattn_cli.recipe.data import DataSection
from kattn_cli.recipe.strict_yaml import Fault

STRICT = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)
"""How every section of a recipe is read."""


STEM_PATCHES = (2, 4, 8, 16, 32)
"""Patch sizes that convolutions of stride 2 can make."""


class Vit(BaseModel):
    """A vision transformer of one's own size.

    ``stem``: one linear map makes a token of a patch, or 3 × 3 convolutions of stride 2 do. ``feed_forward: ista`` is
    CRATE's, which has no use for ``mlp_ratio``; with ``causal`` no patch sees those after it.
    """

    model_config = STRICT
    name: Literal["vit"] = "vit"
    patch_size: Annotated[int, Field(ge=1, le=256)] = 2
    dim: Annotated[int, Field(ge=1, le=8192)] = 48
    depth: Annotated[int, Field(ge=1, le=128)] = 3
    heads: Annotated[int, Field(ge=1, le=128)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 2.0
    pool: Literal["token", "avg"] = "avg"
    position: Literal["learned", "sincos"] = "sincos"
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    feed_forward: Literal["mlp", "ista"] = "mlp"
    stem: Literal["patch", "conv"] = "patch"
    causal: bool = False


class Tost(BaseModel):
    """The architecture of ToST, which is XCiT's without local patch interaction, and FAN's.

    ``layer_scale`` is where LayerScale starts; XCiT has 1 with 12 layers and 1e-5 with 24. ``feed_forward: channel`` is
    FAN's channel attention; ``tokens_norm: false`` leaves all but the class token out of the class blocks' second norm.
    """

    model_config = STRICT
    name: Literal["tost", "xcit", "fan"] = "tost"
    patch_size: Literal[2, 4, 8, 16, 32] = 2
    dim: Annotated[int, Field(ge=1, le=8192)] = 48
    depth: Annotated[int, Field(ge=1, le=128)] = 3
    heads: Annotated[int, Field(ge=1, le=128)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 2.0
    class_depth: Annotated[int, Field(ge=1, le=16)] = 2
    layer_scale: Annotated[float, Field(gt=0, le=1)] = 1.0
    tokens_norm: bool = True
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    feed_forward: Literal["mlp", "ista", "channel"] = "mlp"


class TimmModel(BaseModel):
    """One of timm's vision transformers, by its name there; its sizes come with the name.

    ``weights``: ``timm`` for timm's own pretrained weights, or a file in timm's naming, to begin from.
    """

    model_config = STRICT
    name: str
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    weights: str | None = None


class Segmenter(BaseModel):
    """A vision transformer with a class token, and a mask transformer of ``decoder_depth`` blocks over its patches."""

    model_config = STRICT
    name: Literal["segmenter"] = "segmenter"
    patch_size: Annotated[int, Field(ge=1, le=256)] = 16
    dim: Annotated[int, Field(ge=1, le=8192)] = 192
    depth: Annotated[int, Field(ge=1, le=128)] = 12
    heads: Annotated[int, Field(ge=1, le=128)] = 3
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 4.0
    position: Literal["learned", "sincos"] = "learned"
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    decoder_depth: Annotated[int, Field(ge=1, le=16)] = 2


class Experts(BaseModel):
    """A sparse mixture in place of each block's MLP: every token goes to the ``top`` of ``count`` experts.

    ``capacity``: how many times its even share an expert takes; what is beyond passes by, and is counted. Null: all.
    ``balance``: weight of the loss that spreads the tokens evenly.
    """

    model_config = STRICT
    count: Annotated[int, Field(ge=1, le=1024)] = 16
    top: Annotated[int, Field(ge=1, le=64)] = 2
    capacity: Annotated[float, Field(gt=0, le=1024)] | None = 1.25
    balance: Annotated[float, Field(ge=0, le=10)] = 0.01


class Encoder(BaseModel):
    """A transformer encoder for series and for sequences of tokens: the mean over the tokens is classified.

    ``position``: the code of a token's place, fixed or learned. ``convolution``: the width of a convolution that mixes
    each embedded token with those just before it, null for none. ``dropout`` goes to the embedding and to what each
    branch of a block adds.
    """

    model_config = STRICT
    name: Literal["encoder"] = "encoder"
    dim: Annotated[int, Field(ge=1, le=8192)] = 64
    depth: Annotated[int, Field(ge=1, le=128)] = 2
    heads: Annotated[int, Field(ge=1, le=128)] = 2
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 2.0
    position: Literal["sinusoidal", "learned"] = "learned"
    convolution: Annotated[int, Field(ge=2, le=64)] | None = None
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    experts: Experts | None = None


class Decoder(BaseModel):
    """GPT-2's decoder, of causal mechanisms: it tells the next token of a text, or classifies by the last one.

    ``layer_scale`` is where LayerScale starts, null for none; ``norm_eps`` is ε of its layer norms.
    ToST's language model has both.
    """

    model_config = STRICT
    name: Literal["decoder"] = "decoder"
    dim: Annotated[int, Field(ge=1, le=8192)] = 128
    depth: Annotated[int, Field(ge=1, le=128)] = 4
    heads: Annotated[int, Field(ge=1, le=128)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 4.0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0
    layer_scale: Annotated[float, Field(gt=0, le=1)] | None = None
    norm_eps: Annotated[float, Field(gt=0, lt=1)] = 1e-6
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0
    experts: Experts | None = None


class DecisionTransformer(BaseModel):
    """Returns to go, states and actions in turn, through causal mechanisms: it tells the next action."""

    model_config = STRICT
    name: Literal["decision_transformer"] = "decision_transformer"
    dim: Annotated[int, Field(ge=1, le=8192)] = 256
    depth: Annotated[int, Field(ge=1, le=128)] = 3
    heads: Annotated[int, Field(ge=1, le=128)] = 4
    mlp_ratio: Annotated[float, Field(gt=0, le=16)] = 4.0
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.1
    drop_path: Annotated[float, Field(ge=0, lt=1)] = 0.0


class OtherModel(BaseModel):
    """The base of a model section that a kind of data brings along; it narrows ``name`` to a ``Literal``."""

    model_config = STRICT
    name: str
    dim: Annotated[int, Field(ge=1, le=8192)]
    depth: Annotated[int, Field(ge=1, le=128)]
    heads: Annotated[int, Field(ge=1, le=128)]


ImageModel = Vit | Tost | TimmModel
OwnModel = Vit | Tost | Segmenter | Encoder | Decoder | DecisionTransformer | OtherModel
Model = OwnModel | TimmModel

Kinds = Mapping[type[Model], type[DataSection]]
"""The data section that each model section reads, as the tasks declare them."""


def models_by_name(kinds: Kinds) -> dict[str, type[Model]]:
    """Return the models of one's own size by their names in a recipe; any other name is one of timm's."""
    return {name: model for model in kinds for name in get_args(model.model_fields["name"].annotation)}


def _tost(name: str, dim: int, depth: int, heads: int, layer_scale: float = 1.0) -> dict[str, Any]:
    sizes = {"patch_size": 16, "dim": dim, "depth": depth, "heads": heads, "mlp_ratio": 4.0}
    return {"name": name, **sizes, "layer_scale": layer_scale}


def _gpt2(dim: int, depth: int, heads: int) -> dict[str, Any]:
    return {"name": "decoder", "dim": dim, "depth": depth, "heads": heads}


def _crate(dim: int, depth: int, heads: int) -> dict[str, Any]:
    sizes = {"patch_size": 16, "dim": dim, "depth": depth, "heads": heads}
    return {"name": "vit", **sizes, "pool": "token", "position": "learned", "feed_forward": "ista"}


PRESETS: dict[str, dict[str, Any]] = {
    "tost_tiny": _tost("tost", 192, 12, 4),
    "tost_small": _tost("tost", 384, 12, 8),
    "tost_medium": _tost("tost", 512, 24, 8, layer_scale=1e-5),
    "xcit_small": _tost("xcit", 384, 12, 8),
    "xcit_medium": _tost("xcit", 512, 24, 8, layer_scale=1e-5),
    "fan": {"name": "fan", "feed_forward": "channel"},
    "fan_tiny": {**_tost("fan", 192, 12, 4), "feed_forward": "channel"},
    "crate_tiny": _crate(384, 12, 6),
    "crate_small": _crate(576, 12, 12),
    "crate_base": _crate(768, 12, 12),
    "crate_large": _crate(1024, 24, 16),
    "gpt2_base": _gpt2(768, 12, 12),
    "gpt2_medium": _gpt2(1024, 24, 16),
    "gpt2_large": _gpt2(1280, 36, 20),
}
"""Models by the names of their papers, short for their sizes (ToST paper, Tables 5 and 6; CRATE paper, Table 1; FAN
paper, Table 1), and what makes FAN of the architecture that it shares with them.
"""


def spell_out_preset(data: dict[Any, Any]) -> None:
    """Replace a preset's name by its model and sizes; what is given beside it wins."""
    given = data.get("model")
    if isinstance(given, dict) and isinstance(name := given.get("name"), str) and name in PRESETS:
        data["model"] = {**PRESETS[name], **{key: value for key, value in given.items() if key != "name"}}


def model_kind(value: object, kinds: Kinds) -> type[Model]:
    """Return the kind of model that a recipe names."""
    name = value.get("name", "vit") if isinstance(value, dict) else "vit"
    return models_by_name(kinds).get(name, TimmModel) if isinstance(name, str) else TimmModel


def reads_sequences(value: object) -> bool:
    """Return whether the model that a recipe names reads sequences (of tokens, numbers or steps)."""
    return isinstance(value, dict) and value.get("name") in ("encoder", "decoder", "decision_transformer")


def size_faults(model: OwnModel) -> Iterable[Fault]:
    """Yield sizes that are sound alone and not together."""
    if model.dim % model.heads:
        yield Fault(("model", "heads"), f"must divide model.dim = {model.dim}, and {model.heads} does not")
    if isinstance(model, Vit | Segmenter) and model.position == "sincos" and model.dim % 4:
        yield Fault(("model", "dim"), f"must be a multiple of 4 for position: sincos, and {model.dim} is not")
    if isinstance(model, Encoder | Decoder) and model.experts and model.experts.top > model.experts.count:
        yield Fault(("model", "experts", "top"), f"must be at most experts.count = {model.experts.count}")
    if isinstance(model, Vit) and model.causal and model.pool == "token":
        yield Fault(("model", "pool"), "must be avg for causal: true, since the class token comes first")
    if isinstance(model, Tost) or (isinstance(model, Vit) and model.stem == "conv"):
        yield from _stem_faults(model)


def _stem_faults(model: Vit | Tost) -> Iterable[Fault]:
    """Yield what a stem of convolutions cannot make."""
    if model.patch_size not in STEM_PATCHES:
        known = ", ".join(map(str, STEM_PATCHES))
        yield Fault(("model", "patch_size"), f"must be {known} for stem: conv, and {model.patch_size} is not")
        return
    if isinstance(model, Vit) and model.causal:
        yield Fault(("model", "stem"), "must be patch for causal: true, since convolutions see later patches")
    if model.dim % (narrowest := model.patch_size // 2):
        by = f"for patch_size {model.patch_size}, whose first convolution has dim / {narrowest} channels"
        yield Fault(("model", "dim"), f"must be a multiple of {narrowest} {by}, and {model.dim} is not")


def timm_faults(given: Mapping[str, Any], kinds: Kinds) -> Iterable[Fault]:
    """Yield a fault for sizes beside a name that is not ours: a mistyped one, or one of timm's, which has its own."""
    own = models_by_name(kinds)
    sizes = {key for kind in own.values() for key in kind.model_fields} - {*TimmModel.model_fields}
    if given.keys() & sizes:
        hint = did_you_mean(str(given.get("name")), [*own, *PRESETS])
        yield Fault(("model", "name"), f"only {', '.join(own)} and their presets take sizes{hint}")
