"""Whether a mechanism is a known one under another name: the same outputs with the same weights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import permutations
from typing import Any

import torch
from torch import Tensor, nn

from kattn_cli.attention import ATTENTIONS
from kattn_cli.attention.softmax import SoftmaxAttention
from kattn_cli.commands.judge.probes.finding import Finding, size
from kattn_cli.commands.judge.probes.subject import DIM, TOKENS, Subject, moved, outputs
from kattn_cli.recipe.schema import Mechanism

SAME = 1e-6
"""The share of the outputs' size below which two mechanisms are one."""
PARTS = {"softmax": ("qkv", "proj"), "symmetric": ("kv", "proj")}
"""The projections of mechanisms whose weights are found in others by trying, in whatever order these have them."""
ROLES = {"softmax": ("queries", "keys", "values", "output"), "symmetric": ("keys", "values", "output")}
State = Mapping[str, Tensor]


def is_known(subject: Subject) -> Finding:
    """Give each known mechanism the subject's weights, wherever names or shapes allow, and compare outputs."""
    question = "Is it another mechanism under a new name?"
    module, x = subject.built(), subject.inputs()
    mine = outputs(module, x)
    nearest, name = float("inf"), ""
    for known in ATTENTIONS:
        if known == subject.name:
            continue
        theirs = _alike(known, subject.dtype)
        for state in _assignments(known, theirs, module):
            theirs.load_state_dict(state)
            share = moved(mine, outputs(theirs, x))
            if share < nearest:
                nearest, name = share, known
    if not name:
        return Finding.of(question, False, "no known mechanism has weights of these shapes")
    evidence = f"with its weights {name} gives the same outputs at {TOKENS} tokens, but for {size(nearest)}"
    if nearest > SAME:
        evidence = f"of those with weights of these shapes, {name} is the nearest: {size(nearest)} away"
    return Finding.of(question, nearest <= SAME, evidence)


def matrix_is_softmaxs(subject: Subject) -> Finding:
    """Compare its attention matrix with that of softmax attention, of any two of its projections."""
    question = "Is its attention matrix that of softmax attention?"
    module: Any = subject.built()
    if not hasattr(module, "attention_matrix"):
        return Finding.unasked(question, "it has no attention_matrix")
    if subject.name == "softmax":
        return Finding.unasked(question, "it is softmax attention")
    x = subject.inputs()
    with torch.no_grad():
        mine = module.attention_matrix(x)
    softmax = _alike("softmax", subject.dtype)
    assert isinstance(softmax, SoftmaxAttention)
    blocks = _blocks(module)
    nearest, pair = float("inf"), ""
    for (one, queries), (other, keys) in permutations(enumerate(blocks), 2):
        softmax.load_state_dict(_joined("softmax", softmax, [queries, keys, keys, keys]))
        with torch.no_grad():
            matrix = softmax.attention_matrix(x)
        share = moved(matrix, mine) if matrix.shape == mine.shape else float("inf")
        if share < nearest:
            nearest, pair = share, f"projection {one + 1} as queries, {other + 1} as keys"
    if not pair:
        return Finding.of(question, False, "it has no two projections of width C to make one of")
    return Finding.of(question, nearest <= SAME, f"with {pair} they differ by {size(nearest)}")


def _alike(known: str, dtype: torch.dtype) -> nn.Module:
    return Subject(Mechanism(name=known)).untouched().to(dtype)


def _assignments(known: str, theirs: nn.Module, module: nn.Module) -> Iterator[State]:
    """Yield weights for the known mechanism, taken from ``module``: by name, by order, and by trying projections."""
    state, wanted = module.state_dict(), theirs.state_dict()
    shapes = {name: tensor.shape for name, tensor in state.items()}
    if shapes == {name: tensor.shape for name, tensor in wanted.items()}:
        yield state
    elif [*shapes.values()] == [tensor.shape for tensor in wanted.values()]:
        yield dict(zip(wanted, state.values(), strict=True))
    if known in PARTS and len(blocks := _blocks(module)) == len(ROLES[known]):
        for order in permutations(blocks):
            yield _joined(known, theirs, order)


def _blocks(module: nn.Module) -> list[tuple[Tensor, Tensor]]:
    """Return the weights ``(C, C)`` and biases ``(C,)`` of all linear layers, each cut into as many as it joins."""
    found: list[tuple[Tensor, Tensor]] = []
    for layer in module.modules():
        if isinstance(layer, nn.Linear) and layer.in_features == DIM and layer.out_features % DIM == 0:
            weight = layer.weight.detach()
            bias = weight.new_zeros(len(weight)) if layer.bias is None else layer.bias.detach()
            found += zip(weight.split(DIM), bias.split(DIM), strict=True)
    return found


def _joined(known: str, theirs: nn.Module, order: Any) -> State:
    """Return the state of a known mechanism from one block for each role; the last is the output's."""
    joined, output = PARTS[known]
    weights, biases = zip(*order, strict=True)
    return {
        **theirs.state_dict(),
        f"{joined}.weight": torch.cat(weights[:-1]),
        f"{joined}.bias": torch.cat(biases[:-1]),
        f"{output}.weight": weights[-1],
        f"{output}.bias": biases[-1],
    }
