"""A model trained by two processes, whole in each or in pieces: the same gradients and states as in one."""

from __future__ import annotations

import copy
from typing import Any, Literal

import pytest
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn
from torch.distributed.tensor import DTensor
from two_processes import Pair, two_processes

from kattn_cli.errors import TrainingError
from kattn_cli.models import Classifier, auxiliary_loss, build_model
from kattn_cli.recipe.model import Vit
from kattn_cli.recipe.schema import Attention
from kattn_cli.recipe.train import Train
from kattn_cli.training.distributed import World
from kattn_cli.training.sharding import accumulating, clip, full_state, load_full_state, parallelise, whole
from kattn_cli.training.step import build_optimizer

CPU = torch.device("cpu")
BATCH = 8
TOLERANCE = 1e-12
Kind = Literal["ddp", "fsdp"]
KINDS: list[Kind] = ["ddp", "fsdp"]
MECHANISMS: dict[str, dict[str, Any]] = {
    "softmax": {"name": "softmax"},
    "primal": {"name": "primal", "s": 3, "eta": 0.1},
    "frozen": {"name": "primal", "s": 3, "eta": 0.0, "frozen": True},
}


@pytest.fixture(scope="module")
def pair() -> Pair:
    return two_processes()


def small(mechanism: str, seed: int = 0) -> Classifier:
    torch.manual_seed(seed)
    attention = Attention.model_validate(MECHANISMS[mechanism])
    digits: dict[str, Any] = {"image_size": 8, "channels": 1, "classes": 10, "mean": [0.3], "std": [0.4]}
    return build_model(Vit(patch_size=4, dim=12, depth=2, heads=2), attention, **digits).double()


def batch(step: int = 0) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(step)
    images = torch.rand(BATCH, 1, 8, 8, generator=generator, dtype=torch.float64)
    return images, torch.randint(0, 10, (BATCH,), generator=generator)


class Training:
    """A small model and its optimizer, and one step after the other."""

    def __init__(self, world: World, kind: Kind, mechanism: str, seed: int = 0) -> None:
        self.world, self.steps = world, 0
        self.model = small(mechanism, seed)
        self.parallel = parallelise(self.model, kind, world, CPU)
        self.optimizer = build_optimizer(self.model, Train(lr=1e-2))

    def gradients(self, parts: int = 1, upto: int | None = None) -> tuple[Tensor, dict[str, Tensor]]:
        """The global loss of the next batch, ``parts`` per process, and all gradients as far as part ``upto``."""
        self.optimizer.zero_grad()
        images, labels = batch(self.steps)
        share = BATCH // self.world.size // parts
        total = torch.zeros((), dtype=torch.float64)
        for part in range(upto or parts):
            start = (self.world.rank * parts + part) * share
            with accumulating(self.parallel, last=part == parts - 1):
                logits = self.parallel(images[start : start + share])
                loss = (F.cross_entropy(logits, labels[start : start + share]) + auxiliary_loss(self.model)) / parts
                loss.backward()
            total += loss.detach() / self.world.size
        return self.world.sum(total), {
            name: plain(parameter.grad)
            for name, parameter in self.model.named_parameters()
            if parameter.grad is not None
        }

    def step(self, count: int = 1) -> None:
        for _ in range(count):
            self.gradients()
            clip(self.model, 1.0)
            self.optimizer.step()
            self.steps += 1

    def logits(self) -> Tensor:
        self.model.eval()
        with torch.no_grad():
            logits = self.model(batch()[0])
        self.model.train()
        return logits

    def state(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return full_state(self.model, self.optimizer)

    def load(self, state: tuple[dict[str, Any], dict[str, Any]], steps: int) -> None:
        load_full_state(self.model, self.optimizer, *copy.deepcopy(state))
        self.steps = steps


def plain(tensor: Tensor) -> Tensor:
    return (tensor.full_tensor() if isinstance(tensor, DTensor) else tensor).detach().clone()


def differences(ours: dict[str, Tensor], theirs: dict[str, Tensor]) -> dict[str, float]:
    assert ours.keys() == theirs.keys()
    return {name: (ours[name] - theirs[name]).abs().max().item() for name in ours}


def flat(optimizer_state: dict[str, Any]) -> dict[str, Tensor]:
    return {f"{n}.{key}": value for n, entries in optimizer_state["state"].items() for key, value in entries.items()}


def against_one_process(world: World, kind: Kind, mechanism: str, parts: int) -> dict[str, Any]:
    loss, gradients = Training(World(), "ddp", mechanism).gradients()
    ours, own = Training(world, kind, mechanism).gradients(parts)
    split = Training(world, kind, mechanism)
    split.gradients(parts)
    whole_norm = torch.stack([gradient.norm() for gradient in gradients.values()]).norm()
    norm = clip(split.model, 0.01)
    clipped = {
        name: plain(parameter.grad) for name, parameter in split.model.named_parameters() if parameter.grad is not None
    }
    wanted = {name: gradient * 0.01 / (whole_norm + 1e-6) for name, gradient in gradients.items()}
    return {
        "loss": (ours - loss).abs().item(),
        "gradients": max(differences(own, gradients).values()),
        "norm": (norm - whole_norm).abs().item(),
        "norm's type": type(norm).__name__,
        "clipped": max(differences(clipped, wanted).values()),
        "smallest": min(gradient.abs().max().item() for gradient in gradients.values()),
        "parameters": len(gradients),
    }


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", KINDS)
def test_two_processes_have_the_gradients_of_one(pair: Pair, kind: Kind, mechanism: str, parts: int) -> None:
    """Each with half of the batch; primal's J² is one of each sample, and Λ has a gradient through it alone."""
    for found in pair.run(against_one_process, kind, mechanism, parts):
        assert found.pop("parameters") == sum(one.requires_grad for one in small(mechanism).parameters())
        assert found.pop("norm's type") == "Tensor"
        if mechanism == "primal":
            assert found.pop("smallest") > 1e-6
        found.pop("smallest", None)
        assert max(found.values()) < TOLERANCE, found


def before_the_last_part(world: World, kind: Kind) -> tuple[float, float]:
    """How much gradients differ between the processes after the first of two parts, and after both."""
    found = []
    for upto in (1, 2):
        _, gradients = Training(world, kind, "softmax").gradients(2, upto)
        both = world.gather(gradients["backbone.head.weight"][None])
        found.append((both[0] - both[1]).abs().max().item())
    return found[0], found[1]


def test_ddp_exchanges_gradients_once_a_step(pair: Pair) -> None:
    for first, both in pair.run(before_the_last_part, "ddp"):
        assert first > 1e-3
        assert both == 0


def beginnings(world: World, kind: Kind) -> float:
    """How far the weights are from the first process's, whose seed is 0."""
    training = Training(world, kind, "softmax", seed=world.rank)
    own = {name: plain(value) for name, value in training.model.state_dict().items()}
    return max(differences(own, dict(small("softmax").state_dict())).values())


@pytest.mark.parametrize("kind", KINDS)
def test_all_begin_with_the_first_process_weights(pair: Pair, kind: Kind) -> None:
    assert pair.run(beginnings, kind) == [0, 0]


def pieces(world: World, kind: Kind) -> float:
    """The share of the parameters that this process holds."""
    training = Training(world, kind, "softmax")
    training.step()
    held = [p.to_local() if isinstance(p, DTensor) else p for p in training.model.parameters()]
    return sum(p.numel() for p in held) / sum(p.numel() for p in training.model.parameters())


def test_fsdp_holds_a_piece_of_every_weight(pair: Pair) -> None:
    assert pair.run(pieces, "ddp") == [1, 1]
    assert pair.run(pieces, "fsdp") == pytest.approx([0.5, 0.5], abs=0.1)


def round_trip(world: World, kind: Kind, mechanism: str) -> dict[str, Any]:
    """Two steps, saved, loaded into a fresh training in two processes and in one, and a third step in all three."""
    training = Training(world, kind, mechanism)
    training.step(2)
    training.logits()
    saved = training.state()
    empty_elsewhere = world.main or saved == ({}, {})
    saved = copy.deepcopy(world.share(saved))

    again, alone = Training(world, kind, mechanism, seed=1), Training(World(), "ddp", mechanism, seed=2)
    again.logits()
    for other in (again, alone):
        other.load(saved, steps=2)
    reloaded, in_one = (copy.deepcopy(world.share(each.state())) for each in (again, alone))
    logits = training.logits()
    found: dict[str, Any] = {
        "empty elsewhere": empty_elsewhere,
        "same logits": torch.equal(again.logits(), logits),
        "logits in one": (alone.logits() - logits).abs().max().item(),
        "weights": max(differences(reloaded[0], saved[0]).values()),
        "moments": max(differences(flat(reloaded[1]), flat(saved[1])).values()),
        "weights in one": max(differences(in_one[0], saved[0]).values()),
        "moments in one": max(differences(flat(in_one[1]), flat(saved[1])).values()),
        "groups": saved[1]["param_groups"] == alone.optimizer.state_dict()["param_groups"],
        "keys": list(saved[1]["state"]) == list(alone.optimizer.state_dict()["state"]),
        "types": {type(value) for value in (*saved[0].values(), *flat(saved[1]).values())} == {Tensor},
        "shapes": all(saved[0][name].shape == value.shape for name, value in alone.model.state_dict().items()),
    }
    for each in (training, again, alone):
        each.step()
    after = [copy.deepcopy(world.share(each.state())) for each in (training, again, alone)]
    found["goes on"] = max(differences(after[1][0], after[0][0]).values())
    found["goes on in one"] = max(differences(after[2][0], after[0][0]).values())
    found["has moved"] = max(differences(after[0][0], saved[0]).values()) > 1e-3

    back = Training(world, kind, mechanism, seed=3)
    back.load(after[2], steps=3)
    alone.step()
    back.step()
    found["back from one"] = max(differences(world.share(back.state())[0], alone.model.state_dict()).values())
    return found


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("kind", KINDS)
def test_states_go_from_one_form_of_training_to_another(pair: Pair, kind: Kind, mechanism: str) -> None:
    """Bit for bit, and so the same training goes on as if it had not stopped; another one up to rounding."""
    for found in pair.run(round_trip, kind, mechanism):
        assert max(found.pop("goes on in one"), found.pop("back from one"), found.pop("logits in one")) < 1e-7
        same = {"weights", "moments", "weights in one", "moments in one", "goes on"}
        assert {name: found.pop(name) for name in same} == dict.fromkeys(same, 0)
        assert all(value is True for value in found.values()), found


def test_the_state_of_one_process_is_torchs_own() -> None:
    training = Training(World(), "fsdp", "primal")
    assert training.parallel is training.model
    training.step()
    weights, optimizer = training.state()
    theirs, own = training.model.state_dict(), training.optimizer.state_dict()
    assert {name: value.data_ptr() for name, value in weights.items()} == {
        name: value.data_ptr() for name, value in theirs.items()
    }
    assert optimizer["param_groups"] == own["param_groups"]
    assert optimizer["state"].keys() == own["state"].keys()
    assert max(differences(flat(optimizer), flat(own)).values()) == 0


def uneven(world: World, kind: Kind, mechanism: str) -> dict[str, Any]:
    """No forward pass in the first process, two in the second; then weights change, and all look again."""
    training = Training(world, kind, mechanism)
    with whole(training.model):
        logits = [training.logits() for _ in range(2 * world.rank)]
    split = all(isinstance(parameter, DTensor) == (kind == "fsdp") for parameter in training.model.parameters())
    together = training.logits()
    training.step()
    with whole(training.model):
        later = training.logits()
    return {
        "same": all(torch.equal(one, together) for one in logits),
        "moved": (later - together).abs().max().item() > 1e-4,
        "fresh": torch.equal(later, training.logits()),
        "split": split,
    }


@pytest.mark.parametrize(("kind", "mechanism"), [("ddp", "softmax"), ("fsdp", "softmax"), ("fsdp", "primal")])
def test_processes_may_evaluate_unequal_shares(pair: Pair, kind: Kind, mechanism: str) -> None:
    for found in pair.run(uneven, kind, mechanism):
        assert all(found.values()), found


def test_fsdp_refuses_a_parameter_that_is_a_number() -> None:
    model = small("softmax")
    model.backbone.get_submodule("blocks.0.attn").scale_of_my_own = nn.Parameter(torch.ones(()))
    with pytest.raises(
        TrainingError, match=r"cannot split the parameter .*attn\.scale_of_my_own, .* shape \(1,\), or use ddp"
    ):
        parallelise(model, "fsdp", World(0, 2), CPU)
    assert not dist.is_initialized()
