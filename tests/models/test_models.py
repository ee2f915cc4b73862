"""Any mechanism in any of timm's vision transformers."""

from __future__ import annotations

import pytest
import timm
import torch
from reference_vectors import assert_equal, load
from torch import nn

from kattn_cli.attention import ATTENTIONS
from kattn_cli.attention.primal import PrimalAttention
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.data import load_data
from kattn_cli.models import Classifier, auxiliary_loss, build_model
from kattn_cli.models.vit import build_timm, replace_attention
from kattn_cli.recipe import Attention, Mechanism, TimmModel, Vit

DIGITS = {"image_size": 8, "channels": 1, "classes": 10, "mean": [0.3], "std": [0.4]}
PHOTOS = {"image_size": 224, "channels": 3, "classes": 1000, "mean": [0.5] * 3, "std": [0.25] * 3}


def parameters(attention: Attention) -> int:
    with torch.device("meta"):
        model = build_model(TimmModel(name="deit_tiny_patch16_224"), attention, **PHOTOS)  # type: ignore[arg-type]
    return sum(parameter.numel() for parameter in model.parameters())


def test_parameter_counts_of_the_papers() -> None:
    """DeiT-tiny has 5.7 M; SymViT-tiny and RPC-SymViT-tiny 5.2 M (RPC paper, Table 13)."""
    softmax, symmetric = parameters(Attention(name="softmax")), parameters(Attention(name="symmetric"))
    assert softmax == sum(p.numel() for p in timm.create_model("deit_tiny_patch16_224").parameters())
    assert abs(symmetric / 5.2e6 - 1) < 0.02
    assert parameters(Attention(name="symmetric", layers={0: Mechanism(name="rpc")})) == symmetric


@pytest.mark.parametrize("name", ATTENTIONS)
@pytest.mark.parametrize("model", [Vit(patch_size=4), TimmModel(name="deit_tiny_patch16_224")])
def test_any_mechanism_in_any_backbone_trains(name: str, model: Vit | TimmModel) -> None:
    torch.manual_seed(0)
    size = 8 if isinstance(model, Vit) else 32
    classifier = build_model(model, Attention(name=name), **{**DIGITS, "image_size": size})  # type: ignore[arg-type]
    logits = classifier(torch.rand(2, 1, size, size))
    assert logits.shape == (2, 10)
    (logits.square().sum() + auxiliary_loss(classifier)).backward()
    without = [key for key, parameter in classifier.named_parameters() if parameter.grad is None]
    assert not without


def test_layers_get_their_mechanisms() -> None:
    attention = Attention(
        name="softmax", layers={0: Mechanism(name="rpc"), -1: Mechanism.model_validate({"name": "primal", "s": 3})}
    )
    model = build_model(Vit(depth=3), attention, **DIGITS)  # type: ignore[arg-type]
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
    model = build_model(Vit(), Attention(name="softmax"), **DIGITS).eval()  # type: ignore[arg-type]
    images = torch.rand(2, 1, 8, 8)
    torch.testing.assert_close(model(images), model.backbone((images - 0.3) / 0.4))


def test_class_token_and_position_code() -> None:
    model = build_model(Vit(pool="token"), Attention(name="softmax"), **DIGITS)  # type: ignore[arg-type]
    assert model.attention_inputs(torch.rand(1, 1, 8, 8))[0].shape == (1, 17, 48)
    state = model.backbone.state_dict()
    assert state["pos_embed"][:, 1:].abs().mean() > 0.5
    learned = build_model(Vit(position="learned"), Attention(name="softmax"), **DIGITS)  # type: ignore[arg-type]
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
    images = load_data("digits", 224).splits["train"].images[:2]
    objectives = {}
    for convention in ("paper", "reference"):
        attention = Attention.model_validate({"name": "primal", "s": 32, "convention": convention})
        sizes = {**DIGITS, "image_size": 224}
        model = build_model(TimmModel(name="deit_tiny_patch16_224"), attention, **sizes)  # type: ignore[arg-type]
        model(images)
        layers = [layer for layer in model.mechanisms() if isinstance(layer, PrimalAttention)]
        objectives[convention] = torch.stack([layer.objective().mean() for layer in layers])
    assert 2e3 < objectives["paper"].mean() < 4e3
    assert objectives["reference"].abs().mean() < 1


def test_no_mechanism_with_a_term_adds_nothing() -> None:
    assert auxiliary_loss(Stub(SoftmaxAttention(24, 2, seq_len=9))).item() == 0
