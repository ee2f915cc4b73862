"""Any mechanism in any backbone, and the sizes of the papers' models."""

from __future__ import annotations

from typing import Any

import pytest
import timm
import torch
from reference_vectors import assert_equal, load
from torch import nn

from kattn_cli.attention import ATTENTIONS, attention_classes
from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.models import Classifier, auxiliary_loss, build_language_model, build_model
from kattn_cli.models.vit import build_timm, replace_attention
from kattn_cli.recipe.data import ImageSection
from kattn_cli.recipe.model import PRESETS, ImageModel, TimmModel, Tost, Vit, models_by_name
from kattn_cli.recipe.schema import Attention, Mechanism
from kattn_cli.tasks import kinds, load_data

DEIT_TINY = TimmModel(name="deit_tiny_patch16_224")
DIGITS: dict[str, Any] = {"image_size": 8, "channels": 1, "classes": 10, "mean": [0.3], "std": [0.4]}
PHOTOS: dict[str, Any] = {"image_size": 224, "channels": 3, "classes": 1000, "mean": [0.5] * 3, "std": [0.25] * 3}


MEBI = 2**20 / 1e6
PAPERS = {
    "tost_tiny": ("tssa", 5.8),
    "tost_small": ("tssa", 22.6),
    "tost_medium": ("tssa", 68.1 * MEBI),
    "xcit_small": ("xca", 24.9 * MEBI),
    "xcit_medium": ("xca", 80.2 * MEBI),
    "crate_tiny": ("mssa", 6.09),
    "crate_small": ("mssa", 13.12),
    "crate_base": ("mssa", 22.80),
    "crate_large": ("mssa", 77.64),
}
"""Millions of parameters: ToST paper, Table 5; CRATE paper, Table 1."""


LANGUAGE = {
    "gpt2_base": (("softmax", 124.4), ("tssa", 110)),
    "gpt2_medium": (("tssa", 304),),
    "gpt2_large": (("tssa", 655),),
}
"""Millions of parameters for 1,024 of 50,257 tokens: ToST paper, Tables 4 and 6."""


def preset(name: str) -> Any:
    return models_by_name(kinds())[PRESETS[name]["name"]].model_validate(PRESETS[name])


def parameters(attention: Attention, model: ImageModel = DEIT_TINY) -> int:
    with torch.device("meta"):
        built = build_model(model, attention, **PHOTOS)
    return sum(parameter.numel() for parameter in built.parameters())


def test_parameter_counts_of_the_papers() -> None:
    """DeiT-tiny has 5.7 M; SymViT-tiny and RPC-SymViT-tiny 5.2 M (RPC paper, Table 13)."""
    softmax, symmetric = parameters(Attention(name="softmax")), parameters(Attention(name="symmetric"))
    assert softmax == sum(p.numel() for p in timm.create_model("deit_tiny_patch16_224").parameters())
    assert abs(symmetric / 5.2e6 - 1) < 0.02
    assert parameters(Attention(name="symmetric", layers={0: Mechanism(name="rpc")})) == symmetric


@pytest.mark.parametrize(("name", "attention", "millions"), [(n, *one) for n, all_ in LANGUAGE.items() for one in all_])
def test_parameter_counts_of_language_models(name: str, attention: str, millions: float) -> None:
    with torch.device("meta"):
        built = build_language_model(preset(name), Attention(name=attention), seq_len=1024, vocabulary=50_257)
    assert sum(parameter.numel() for parameter in built.parameters()) / 1e6 == pytest.approx(millions, rel=0.01)


@pytest.mark.parametrize("name", PAPERS)
def test_parameter_counts_of_presets(name: str) -> None:
    """The 68.1, 24.9 and 80.2 of ToST's table are in 2²⁰: XCiT without local patch interaction is as large as ours."""
    attention, millions = PAPERS[name]
    assert parameters(Attention(name=attention), preset(name)) / 1e6 == pytest.approx(millions, rel=0.01)


@pytest.mark.parametrize(("name", "millions"), [("deit_small_patch16_224", 22.1), ("deit_base_patch16_224", 86.6)])
def test_parameter_counts_of_vits(name: str, millions: float) -> None:
    """ViT-S and ViT-B of ToST's Table 5."""
    assert parameters(Attention(name="softmax"), TimmModel(name=name)) / 1e6 == pytest.approx(millions, rel=0.005)


@pytest.mark.parametrize(("ours", "theirs"), [("xcit_small", "small_12"), ("xcit_medium", "medium_24")])
def test_xcit_has_as_many_parameters_as_timms_without_local_patch_interaction(ours: str, theirs: str) -> None:
    with torch.device("meta"):
        xcit = timm.create_model(f"xcit_{theirs}_p16_224")
    left_out = ("local_mp", "norm3", "gamma3")
    count = sum(p.numel() for key, p in xcit.named_parameters() if not any(part in key for part in left_out))
    assert parameters(Attention(name="xca"), preset(ours)) == count


BACKBONES: dict[str, tuple[ImageModel, int]] = {
    "vit": (Vit(patch_size=4), 8),
    "deit": (DEIT_TINY, 32),
    "tost": (Tost(patch_size=4), 8),
    "tost of ISTA": (Tost(patch_size=4, feed_forward="ista"), 8),
    "crate": (Vit(patch_size=4, pool="token", position="learned", feed_forward="ista"), 8),
}


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("backbone", BACKBONES)
def test_any_mechanism_in_any_backbone_trains(name: str, backbone: str) -> None:
    torch.manual_seed(0)
    model, size = BACKBONES[backbone]
    classifier = build_model(model, Attention(name=name), **{**DIGITS, "image_size": size})
    logits = classifier(torch.rand(2, 1, size, size))
    assert logits.shape == (2, 10)
    (logits.square().sum() + auxiliary_loss(classifier)).backward()
    without = [key for key, parameter in classifier.named_parameters() if parameter.grad is None]
    assert not without


CAUSAL = [name for name, cls in attention_classes().items() if getattr(cls, "supports_causal", False)]


@pytest.mark.parametrize("name", CAUSAL)
@pytest.mark.parametrize("feed_forward", ["mlp", "ista"])
def test_causal_vit_does_not_see_what_follows(name: str, feed_forward: str) -> None:
    torch.manual_seed(0)
    vit = Vit.model_validate({"causal": True, "feed_forward": feed_forward})
    options = {"projection": "data-independent"} if name == "primal" else {}
    model = build_model(vit, Attention.model_validate({"name": name, **options}), **DIGITS).double().eval()
    images = torch.rand(2, 1, 8, 8, dtype=torch.float64)
    changed = images.clone()
    changed[:, :, 4:] += torch.rand(2, 1, 4, 8, dtype=torch.float64)
    backbone: Any = model.backbone
    before, after = (backbone.forward_features(x) for x in (images, changed))
    assert_equal(after[:, :8], before[:, :8])
    assert ((after[:, 8:] - before[:, 8:]).abs().amax((0, 2)) > 1e-6).all()


def test_layers_get_their_mechanisms() -> None:
    attention = Attention(
        name="softmax", layers={0: Mechanism(name="rpc"), -1: Mechanism.model_validate({"name": "primal", "s": 3})}
    )
    model = build_model(Vit(depth=3), attention, **DIGITS)
    assert [type(one).__name__ for one in model.mechanisms()] == ["RPCAttention", "SoftmaxAttention", "PrimalAttention"]
    assert model(torch.rand(2, 1, 8, 8)).shape == (2, 10)
    inputs = model.attention_inputs(torch.rand(2, 1, 8, 8))
    assert [tuple(x.shape) for x in inputs] == [(2, 16, 48)] * 3


def test_softmax_in_place_of_timms_own_changes_nothing() -> None:
    """Before and after: timm's weights load by timm's names."""
    torch.manual_seed(0)
    theirs = timm.create_model("deit_tiny_patch16_224", depth=2, img_size=32, num_classes=5).eval()
    ours = build_timm("deit_tiny_patch16_224", depth=2, img_size=32, num_classes=5).eval()
    replace_attention(ours, [SoftmaxAttention(192, 3, seq_len=5) for _ in range(2)])
    ours.load_state_dict(theirs.state_dict())
    images = torch.rand(2, 3, 32, 32)
    torch.testing.assert_close(ours(images), theirs(images))


def test_normalisation_is_part_of_the_model() -> None:
    torch.manual_seed(0)
    model = build_model(Vit(), Attention(name="softmax"), **DIGITS).eval()
    images = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(model(images), model.backbone((images - 0.3) / 0.4))


def test_class_token_and_position_code() -> None:
    model = build_model(Vit(pool="token"), Attention(name="softmax"), **DIGITS)
    assert model.attention_inputs(torch.rand(1, 1, 8, 8))[0].shape == (1, 17, 48)
    state = model.backbone.state_dict()
    assert state["pos_embed"][:, 1:].abs().mean() > 0.5
    learned = build_model(Vit(position="learned"), Attention(name="softmax"), **DIGITS)
    assert learned.backbone.state_dict()["pos_embed"].abs().mean() < 0.1


class Stub(Classifier):
    """A model that is only a list of mechanisms."""

    def __init__(self, *modules: nn.Module) -> None:
        nn.Module.__init__(self)
        self.register_buffer("mean", torch.zeros(1, dtype=torch.float64))
        self.modules_ = nn.ModuleList(modules)

    def mechanisms(self) -> list[nn.Module]:
        return list(self.modules_)


def test_ksvd_terms_of_several_layers_equal_the_authors() -> None:
    """reference: the mean over layers; paper (eq. 10): the sum."""
    vector = load("primal_cv__ksvd_3layers")
    layers = []
    for index in range(3):
        part = {key.removeprefix(f"layer{index}."): value for key, value in vector.items()}
        layer = PrimalAttention(24, 2, seq_len=33, s=3, rank_multi=5, eta=1.0, convention="reference").double()
        names = {"we": "w_e", "wr": "w_r", "Lambda": "regulariser"}
        state = {names.get(key, key.replace("concate_weight", "concat")): value for key, value in part.items()}
        layer.load_state_dict({key: state[key] for key in layer.state_dict()})
        layer(part["x"])
        layers.append(layer)
    assert_equal(auxiliary_loss(Stub(*layers)), vector["ksvd_loss"])
    for layer in layers:
        layer.convention = "paper"
    expected = torch.stack([layer.objective().square().mean() for layer in layers]).sum()
    assert_equal(auxiliary_loss(Stub(SoftmaxAttention(24, 2, seq_len=9), *layers)), expected)


def test_size_of_the_ksvd_term_that_the_readme_states() -> None:
    """Primal. DeiT-tiny at initialisation, 197 tokens, s = 32: J ≈ 3·10³ as printed, below 1 as the authors ran it."""
    torch.manual_seed(0)
    images, _ = next(load_data(ImageSection(image_size=224)).splits["train"].batches(2))
    objectives = {}
    for convention in ("paper", "reference"):
        attention = Attention.model_validate({"name": "primal", "s": 32, "convention": convention})
        sizes = {**DIGITS, "image_size": 224}
        model = build_model(DEIT_TINY, attention, **sizes)
        model(images)
        layers = [layer for layer in model.mechanisms() if isinstance(layer, PrimalAttention)]
        objectives[convention] = torch.stack([layer.objective().mean() for layer in layers])
    assert 2e3 < objectives["paper"].mean() < 4e3
    assert objectives["reference"].abs().mean() < 1


def test_no_mechanism_with_a_term_adds_nothing() -> None:
    assert auxiliary_loss(Stub(SoftmaxAttention(24, 2, seq_len=9))).item() == 0
