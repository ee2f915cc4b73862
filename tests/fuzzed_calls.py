"""Random calls of every mechanism and of every operator that has equations of its own: what :mod:`fuzz` judges.

Options, shapes, types, memory layouts, masks and gradients are drawn. B: batch, H: heads, N: tokens, d: head width.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from kattn_cli.attention import ATTENTIONS, attention_classes
from kattn_cli.attention.options import build_attention
from kattn_cli.errors import RecipeError
from kattn_cli.kernels.block_sparse import block_sparse_attention, block_sparse_attention_naive
from kattn_cli.kernels.causal_tssa.equations import Convention, causal_tssa_naive
from kattn_cli.kernels.causal_tssa.operator import causal_tssa
from kattn_cli.kernels.cosformer import cosformer_angles, cosformer_features, cosformer_naive
from kattn_cli.kernels.flowformer import flow_attention, flow_attention_naive
from kattn_cli.kernels.linear import elu_features, linear_attention, linear_attention_naive
from kattn_cli.kernels.linformer import linformer_attention, linformer_attention_naive
from kattn_cli.kernels.longformer import sliding_window_attention, sliding_window_attention_naive
from kattn_cli.kernels.performer import performer_naive, softmax_features
from kattn_cli.kernels.precision import exact
from kattn_cli.kernels.primal.equations import (
    cosine_features,
    cosine_scores,
    exp_features,
    exp_features_naive,
    ksvd_objective,
    ksvd_objective_of,
    primal_scores_naive,
)
from kattn_cli.kernels.pursuit.equations import Pursuit, pap, pap_naive
from kattn_cli.kernels.scaled import (
    learned_scaled_values,
    learned_scaling,
    scaled_attention_naive,
    symmetric_scaled_values,
)
from kattn_cli.kernels.softmax import softmax_attention, softmax_attention_naive
from kattn_cli.kernels.tssa.operator import tssa
from kattn_cli.kernels.xca import xca, xca_naive
from kattn_cli.kernels.yoso_e import yoso, yoso_naive

Inputs = dict[str, Tensor]
Function = Callable[[Inputs, Tensor | None], dict[str, Tensor]]
"""From inputs and a mask to outputs by name. At the padding what is called ``out`` means nothing."""

DTYPES = (torch.float64, torch.float32, torch.bfloat16, torch.float16)
TOKENS = (0, 1, 1, 2, 2, 3, 5, 7, 9, 13, 16, 31, 63, 64, 65, 130)
MANY = 2**18
"""Entries from which the kernels in C are entered whatever :data:`kattn_cli.kernels.choice.SMALL` is."""
LARGE = ((65, 4, 34, 32), (9, 8, 115, 32), (2, 2, 65, 1024))
"""``(B, H, N, d)`` of as many."""


def contiguous(z: Tensor) -> Tensor:
    return z.contiguous()


def tokens_first(z: Tensor) -> Tensor:
    return z.transpose(-3, -2).contiguous().transpose(-3, -2) if z.ndim > 2 else z.mT.contiguous().mT


def columns_first(z: Tensor) -> Tensor:
    return z.mT.contiguous().mT


def channels_last(z: Tensor) -> Tensor:
    return z.contiguous(memory_format=torch.channels_last) if z.ndim == 4 else columns_first(z)


def among_others(z: Tensor) -> Tensor:
    """Every second entry; between them is what no sum forgives."""
    other = ~z if z.dtype == torch.bool else torch.full_like(z, torch.nan)
    return torch.stack((z, other), -1)[..., 0]


def in_the_middle(z: Tensor) -> Tensor:
    """A part of a larger tensor, on all sides of which is what no sum forgives."""
    around = (1, 2) + (2, 1) * (z.ndim > 1)
    value = True if z.dtype == torch.bool else torch.nan
    larger = F.pad(z, around, value=value)
    return larger[..., 2:-1, 1:-2] if z.ndim > 1 else larger[1:-2]


def repeated(z: Tensor) -> Tensor:
    """The first along the first axis, again and again, without memory: for what is equal there."""
    return z[:1].expand_as(z)


def one_for_all(z: Tensor) -> Tensor:
    """The first along the first axis alone, of what is equal there; behind it is what no sum forgives."""
    return torch.cat((z[:1], ~z))[:1] if z.dtype == torch.bool else z[:1].clone()


Layout = Callable[[Tensor], Tensor]
LAYOUTS: list[Layout] = [contiguous, tokens_first, columns_first, channels_last, among_others, in_the_middle, repeated]
MASK_LAYOUTS: list[Layout] = [contiguous, columns_first, among_others, in_the_middle, repeated, one_for_all]
BAD_MASKS: dict[str, Layout] = {
    "a column": lambda mask: mask.new_ones(len(mask), 1 if mask.shape[1] != 1 else 2),
    "one axis": lambda mask: mask.flatten(),
    "three axes": lambda mask: mask[:, None],
    "a token more": lambda mask: F.pad(mask, (0, 1), value=True),
    "two samples more": lambda mask: F.pad(mask, (0, 0, 0, 2), value=True),
    "int64": lambda mask: mask.long(),
    "uint8": lambda mask: mask.byte(),
    "float32": lambda mask: mask.float(),
}


@dataclass
class Call:
    """A call as it is given, and what it is in clean memory.

    Args:
        subject: the mechanism or operator, as the table names it.
        values: inputs, float64, contiguous, of values that ``dtype`` has.
        layouts: how an input lies in memory, where it is not contiguous.
        mask: ``(B, N)``, bool and contiguous; None for no padding.
        given_mask: the same as it is given, or what is to be refused.
        spoiled: whether it is to be refused.
        function: what is called, by whatever version of the operators is in force.
        equations: the slow version, where ``slow`` operators are not that.
        small: from how many entries kernels are used.
    """

    subject: str
    text: str
    dtype: torch.dtype
    values: Inputs
    function: Function
    equations: Function | None = None
    layouts: dict[str, Layout] = field(default_factory=dict)
    mask: Tensor | None = None
    given_mask: Tensor | None = None
    spoiled: bool = False
    gradient: bool = True
    expanded_gradient: bool = False
    small: int = 0
    threads: int = 1


def call_of(seed: int, number: int) -> Call:
    """Return one call, the same for the same seed and number."""
    chosen = random.Random(f"{seed} {number}")
    torch.manual_seed(chosen.getrandbits(48))
    names = [*(f"mechanism {name}" for name in ATTENTIONS), *(f"operator {name}" for name in OPERATORS)]
    kind, _, name = (subject := chosen.choice(names)).partition(" ")
    call = _mechanism(chosen, name) if kind == "mechanism" else OPERATORS[name](chosen)
    call.subject = subject
    call.gradient = chosen.random() < 0.8
    call.expanded_gradient = chosen.random() < 0.3
    call.threads = 3 if chosen.random() < 0.03 else 1
    for key, value in call.values.items():
        layout = chosen.choice(LAYOUTS) if value.ndim and chosen.random() < 0.5 else contiguous
        if layout is repeated and value.ndim and len(value):
            call.values[key] = repeated(value).contiguous()
        if layout in (columns_first, tokens_first, channels_last) and value.ndim < 2:
            layout = among_others
        call.layouts[key] = layout
        call.values[key] = call.values[key].to(call.dtype).double()
    lying = {key: layout.__name__ for key, layout in call.layouts.items() if layout is not contiguous}
    call.text += f", {str(call.dtype).removeprefix('torch.')}, layouts {lying}, gradient {call.gradient}"
    call.text += f" (expanded {call.expanded_gradient}), kernels from {call.small} entries, {call.threads} threads"
    return call


def _sizes(chosen: random.Random, most: int = 130, large: bool = False) -> tuple[int, int, int, int]:
    if large and chosen.random() < 0.02:
        return chosen.choice(LARGE)
    tokens = chosen.choice([n for n in TOKENS if n <= most])
    return chosen.choice((0, 1, 1, 2, 2, 3)), chosen.choice((1, 2, 3)), tokens, chosen.choice((1, 2, 4, 5, 8))


def _dtype(chosen: random.Random, *sizes: int) -> torch.dtype:
    # Products in half precision take a CPU seconds where there are many.
    return chosen.choice(DTYPES[:2] if math.prod(sizes) >= MANY else DTYPES)


def _draw(chosen: random.Random, *shape: int) -> Tensor:
    return chosen.choice((0.3, 1.0, 1.0, 2.0)) * torch.randn(shape, dtype=torch.float64)


def _masked(chosen: random.Random, call: Call, samples: int, tokens: int) -> None:
    """Draw a mask, or none, and how it is given."""
    call.small = chosen.choice((0, 0, MANY))
    kind = chosen.choice(("none", "none", "all", "random", "random", "first", "empty rows"))
    if kind == "none":
        call.text += ", no mask"
        return
    mask = torch.ones(samples, tokens, dtype=torch.bool)
    if kind == "random":
        mask = torch.rand(samples, tokens) < 0.7
    if kind == "first":
        mask = torch.arange(tokens) < torch.randint(0, tokens + 1, (samples, 1))
    if kind == "empty rows":
        mask = (torch.rand(samples, 1) < 0.5) & (torch.rand(samples, tokens) < 0.8)
    if chosen.random() < 0.06:
        how, spoiled = chosen.choice(list(BAD_MASKS.items()))
        call.mask, call.given_mask, call.spoiled = mask, spoiled(mask), True
        call.text += f", mask {how}"
        return
    layout = chosen.choice(MASK_LAYOUTS)
    if layout in (repeated, one_for_all) and samples:
        mask = repeated(mask).contiguous()
    call.mask, call.given_mask = mask, layout(mask)
    call.text += f", mask {kind} {layout.__name__}"


OPTIONS: dict[str, dict[str, tuple[Any, ...]]] = {
    "scaled": {"variant": ("scalar", "matrix")},
    "rpc": {
        "iterations": (1, 2, 4),
        "lambda": (0.1, 1.0, 4.0),
        "convention": ("paper", "reference", "textbook"),
        "asymmetric": ("none", "iterate"),
    },
    "primal": {
        "s": (1, 3, 20),
        "rank_multi": (1, 10),
        "projection": ("data-dependent", "data-independent"),
        "feature_map": ("cosine", "cosine", "exp"),
        "scores": ("both", "e"),
        "trace": ("weights", "projected"),
        "square": ("batch", "sample"),
        "convention": ("paper", "reference"),
    },
    "tssa": {"normalize": (True, False), "convention": ("paper", "reference")},
    "linear": {"convention": ("paper", "reference")},
    "performer": {"features": (4, 7, 16), "kernel": ("softmax", "relu"), "convention": ("paper", "reference")},
    "linformer": {
        "k": (1, 4, 256),
        "sharing": ("none", "headwise", "key-value"),
        "convention": ("paper", "reference"),
    },
    "nystromformer": {"landmarks": (1, 2, 4, 64), "conv_kernel_size": (0, 3), "convention": ("paper", "reference")},
    "soft": {"landmarks": (1, 2, 4, 49), "iterations": (5, 20)},
    "longformer": {"window": (2, 4, 8), "global_tokens": (0, 0, 2)},
    "bigbird": {
        "block_size": (1, 2, 4),
        "window_blocks": (1, 3),
        "global_blocks": (0, 1),
        "random_blocks": (0, 1),
    },
    "reformer": {"hashes": (1, 2), "chunk": (2, 4, 16), "convention": ("paper", "reference")},
    "yoso_e": {"tau": (1, 9), "gradient": ("exact", "lower-bound"), "conv_kernel_size": (0, 3)},
}


def _mechanism(chosen: random.Random, name: str) -> Call:
    samples, heads, tokens, width = _sizes(chosen, large=name in ("tssa", "primal", "rpc"))
    if width > 32:
        samples, heads, tokens, width = LARGE[0]  # a projection of wide tokens takes seconds
    options = {key: chosen.choice(values) for key, values in OPTIONS.get(name, {}).items()}
    options["qkv_bias"] = chosen.choice((True, False))
    causal = attention_classes()[name].supports_causal and chosen.random() < 0.4
    if options.get("feature_map") == "exp" or name == "yoso_e":
        tokens = min(tokens, 7)  # their slow versions take tokens by pairs
    if name == "reformer":
        tokens = min(tokens, 31)  # and this one pairs of a chunk
    causal = causal and tokens * samples * heads * width < MANY
    length = max(1, tokens + chosen.choice((0, 0, 3)))
    dim = heads * width
    try:
        module = build_attention(name, options, dim=dim, heads=heads, seq_len=length, causal=causal)
    except RecipeError:  # these options do not go together: the form of the paper that sees all tokens does
        options = {"qkv_bias": True}
        causal = False
        module = build_attention(name, options, dim=dim, heads=heads, seq_len=length)
    module = module.double().eval()
    values = {"x": _draw(chosen, samples, tokens, dim)}
    for key, parameter in module.named_parameters():
        # Away from where they start, since some start at zero.
        values[key] = parameter.detach() + 0.1 * torch.randn_like(parameter)
    dtype = _dtype(chosen, samples, heads, tokens, width)

    def function(inputs: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        built = copy.deepcopy(module).to(dtype).to(inputs["x"].dtype)
        for key, value in inputs.items():
            if key != "x":
                _replace(built, key, value)
        found = {"out": built(inputs["x"]) if mask is None else built(inputs["x"], mask)}
        if hasattr(built, "auxiliary_loss"):
            found["auxiliary loss"] = built.auxiliary_loss()  # type: ignore[operator]
        return found

    text = f"{options}, causal {causal}, B = {samples}, H = {heads}, N = {tokens}, d = {width}, seq_len {length}"
    call = Call(name, text, dtype, values, function)
    _masked(chosen, call, samples, tokens)
    return call


def _replace(module: nn.Module, key: str, value: Tensor) -> None:
    """Put a tensor in the place of a parameter, so that gradients go to it."""
    owner, _, name = key.rpartition(".")
    part = module.get_submodule(owner)
    del part._parameters[name]
    setattr(part, name, value)


def _call(
    chosen: random.Random,
    sizes: tuple[int, int, int, int],
    text: str,
    values: Inputs,
    function: Function,
    equations: Function | None = None,
) -> Call:
    samples, heads, tokens, width = sizes
    text = f"{text}, B = {samples}, H = {heads}, N = {tokens}, d = {width}".removeprefix(", ")
    # Equations that go token by token have nothing to return without one.
    slow = equations if samples and tokens and heads else None
    call = Call("", text, _dtype(chosen, *sizes), values, function, slow)
    _masked(chosen, call, samples, tokens)
    return call


def _tssa(chosen: random.Random) -> Call:
    sizes = _sizes(chosen, large=True)
    normalize = chosen.random() < 0.7

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": tssa(z["w"], z["eta"], normalize, mask)}

    values = {"w": _draw(chosen, *sizes), "eta": _draw(chosen, sizes[1])}
    return _call(chosen, sizes, f"normalize {normalize}", values, function)


def _causal_tssa(chosen: random.Random) -> Call:
    sizes = _sizes(chosen, most=31)
    if chosen.random() < 0.02:
        sizes = (2, 2, 9, 2**13)
    normalize = chosen.random() < 0.7
    convention: Convention = chosen.choice(("paper", "reference"))

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": causal_tssa(z["w"], z["eta"], z["bias"][..., None], normalize, convention, mask)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": causal_tssa_naive(z["w"], z["eta"], z["bias"][..., None], normalize, convention, mask)}

    values = {"w": _draw(chosen, *sizes), "eta": _draw(chosen, sizes[1])}
    values["bias"] = _draw(chosen, chosen.choice((1, sizes[0])), sizes[1], sizes[2])
    return _call(chosen, sizes, f"normalize {normalize}, {convention}", values, function, equations)


def _primal_scores(chosen: random.Random) -> Call:
    samples, heads, tokens, width = sizes = _sizes(chosen, most=65)
    if chosen.random() < 0.02:
        samples, heads, tokens, width = sizes = LARGE[2]
    directions = chosen.choice((1, 3, 8))
    convention: Convention = chosen.choice(("paper", "reference"))
    rows = chosen.choice((0, 1, 4))
    values = {key: _draw(chosen, *sizes) for key in ("q", "k")}
    values |= {key: _draw(chosen, heads, rows or width, directions) for key in ("w_e", "w_r")}
    values["regulariser"] = torch.rand(heads, directions, dtype=torch.float64)
    if rows:
        values["rows"] = _draw(chosen, samples, heads, rows, width)

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        scores, energy = cosine_scores(z["q"], z["k"], z.get("rows"), z["w_e"], z["w_r"], mask)
        weights = z["w_e"], z["w_r"], z["regulariser"]
        e, r = scores.chunk(2, -1)
        if energy is None:
            return {"out": scores, "J": ksvd_objective(e, r, *weights, convention, mask)}
        return {"out": scores, "J": ksvd_objective_of(energy, tokens, *weights, convention)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        e, r = (
            primal_scores_naive(cosine_features(z[side]), z.get("rows"), z[weight])
            for side, weight in (("q", "w_e"), ("k", "w_r"))
        )
        return {
            "out": torch.cat((e, r), -1),
            "J": ksvd_objective(e, r, z["w_e"], z["w_r"], z["regulariser"], convention, mask),
        }

    call = _call(chosen, sizes, f"s = {directions}, n = {rows}, {convention}", values, function, equations)
    if convention == "reference":
        # Its J counts the padding, whatever the mask.
        call.mask, call.given_mask, call.spoiled = None, None, False
    return call


def _exp_features(chosen: random.Random) -> Call:
    sizes = _sizes(chosen, most=9)
    causal, features = chosen.random() < 0.5, chosen.choice((1, 4))
    values = {"q": _draw(chosen, *sizes), "k": _draw(chosen, *sizes), "directions": _draw(chosen, features, sizes[3])}

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": torch.cat(exp_features(z["q"], z["k"], z["directions"], causal, mask)[:2], -1)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": torch.cat(exp_features_naive(z["q"], z["k"], z["directions"], causal, mask), -1)}

    return _call(chosen, sizes, f"causal {causal}, p = {features}", values, function, equations)


def _pap(chosen: random.Random) -> Call:
    sizes = _sizes(chosen, large=True)
    pursuit = Pursuit(
        chosen.choice((1, 2, 4)),
        chosen.choice((0.0, 0.1, 1.0, 4.0)),
        chosen.choice(("paper", "reference", "textbook")),
        chosen.random() < 0.4,
    )
    values = {key: _draw(chosen, *sizes) for key in ("k", "v", "q")[: chosen.choice((2, 2, 3))]}

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": pap(z["k"], z["v"], pursuit, q=z.get("q"), mask=mask)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": pap_naive(z["k"], z["v"], pursuit, q=z.get("q"), mask=mask)}

    return _call(chosen, sizes, f"{pursuit}, q {'q' in values}", values, function, equations)


def _softmax(chosen: random.Random) -> Call:
    sizes = _sizes(chosen)
    causal = chosen.random() < 0.5
    last = chosen.choice((1, 2, 200))

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"of the last": softmax_attention(z["q"][:, :, -last:], z["k"], z["v"], causal=causal, mask=mask)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"of the last": softmax_attention_naive(z["q"][:, :, -last:], z["k"], z["v"], causal, mask)}

    values = {key: _draw(chosen, *sizes) for key in ("q", "k", "v")}
    return _call(chosen, sizes, f"causal {causal}, {last} queries", values, function, equations)


def _scaled(chosen: random.Random) -> Call:
    _, heads, tokens, _ = sizes = _sizes(chosen)
    causal, learned = chosen.random() < 0.5, chosen.random() < 0.5
    values = {key: _draw(chosen, *sizes) for key in ("q", "k", "v")}
    values["s"] = _draw(chosen, heads, tokens + 1, tokens + 1) if learned else _draw(chosen, 1)

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        if learned:
            freed = learned_scaled_values(z["v"], z["s"], causal=causal, mask=mask)
        else:
            freed = symmetric_scaled_values(z["k"], z["v"], z["s"], causal=causal, mask=mask)
        return {"out": softmax_attention(z["q"], z["k"], freed, causal=causal, mask=mask)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        if not learned:
            return function(z, mask)
        scaling = learned_scaling(z["s"], tokens, causal=causal, mask=mask)
        return {"out": scaled_attention_naive(z["q"], z["k"], z["v"], scaling, causal, mask)}

    return _call(chosen, sizes, f"causal {causal}, learned {learned}", values, function, equations)


def _xca(chosen: random.Random) -> Call:
    sizes = _sizes(chosen)

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": xca(z["q"], z["k"], z["v"], z["temperature"], mask)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": xca_naive(z["q"], z["k"], z["v"], z["temperature"], mask)}

    values = {key: _draw(chosen, *sizes) for key in ("q", "k", "v")} | {"temperature": _draw(chosen, sizes[1])}
    return _call(chosen, sizes, "", values, function, equations)


def _of_queries_keys_values(
    function: Callable[..., Tensor], equations: Callable[..., Tensor], most: int, causal_too: bool = True
) -> Callable[[random.Random], Call]:
    """For what takes q, k, v, ``mask=`` and maybe ``causal=`` both fast and slow."""

    def drawn(chosen: random.Random) -> Call:
        sizes = _sizes(chosen, most=most)
        more = {"causal": chosen.random() < 0.5} if causal_too else {}

        def fast(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
            return {"out": function(z["q"], z["k"], z["v"], mask=mask, **more)}

        def slow(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
            return {"out": equations(z["q"], z["k"], z["v"], mask=mask, **more)}

        return _call(chosen, sizes, f"{more}", {key: _draw(chosen, *sizes) for key in ("q", "k", "v")}, fast, slow)

    return drawn


def _linear(q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Tensor:
    return linear_attention(elu_features(q), elu_features(k), v, **more)


def _linear_naive(q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Tensor:
    return linear_attention_naive(elu_features(q), elu_features(k), exact(v), **more).to(v.dtype)


def _cosformer(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    angles = cosformer_angles(q, 140, mask)
    phi_q, phi_k = (cosformer_features(z, angles) for z in (q, k))
    return linear_attention(phi_q, phi_k, v, mask=mask, causal=causal)


def _cosformer_naive(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    return cosformer_naive(q, k, v, 140, mask, causal)


def _performer(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    phi_q, phi_k, log_weight = softmax_features(q, k, _projection(q))
    return linear_attention(phi_q, phi_k, v, mask=mask, causal=causal, log_weight=log_weight)


def _performer_naive(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, causal: bool) -> Tensor:
    return performer_naive(q, k, exact(v), _projection(q), mask, causal).to(v.dtype)


def _projection(q: Tensor) -> Tensor:
    return torch.linspace(-1, 1, 6 * q.shape[-1], dtype=torch.float64).cos().view(6, -1).to(q.dtype)


def _yoso(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return yoso(q, k, v, 3, "lower-bound", mask)


def _yoso_naive(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return yoso_naive(q, k, v, 3, "lower-bound", mask)


def _longformer(q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Tensor:
    return sliding_window_attention(q, k, v, 4, global_keys=1, **more)


def _longformer_naive(q: Tensor, k: Tensor, v: Tensor, **more: Any) -> Tensor:
    return sliding_window_attention_naive(q, k, v, 4, global_keys=1, **more)


def _blocks(q: Tensor) -> Tensor:
    """Each block of three tokens, and the first one."""
    rows = torch.arange(-(-q.shape[-2] // 3))[:, None]
    return torch.cat((torch.where(rows == 0, -1, 0), rows), -1)[None]


def _bigbird(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return block_sparse_attention(q, k, v, _blocks(q), 3, seeing_all=1, mask=mask)


def _bigbird_naive(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None) -> Tensor:
    return block_sparse_attention_naive(q, k, v, _blocks(q), 3, seeing_all=1, mask=mask)


def _linformer(chosen: random.Random) -> Call:
    _, heads, tokens, _ = sizes = _sizes(chosen)
    values = {key: _draw(chosen, *sizes) for key in ("q", "k", "v")}
    values |= {key: _draw(chosen, chosen.choice((1, heads)), 3, tokens + 1) for key in ("e", "f")}

    def function(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": linformer_attention(z["q"], z["k"], z["v"], z["e"], z["f"], mask=mask)}

    def equations(z: Inputs, mask: Tensor | None) -> dict[str, Tensor]:
        return {"out": linformer_attention_naive(z["q"], z["k"], z["v"], z["e"], z["f"], mask=mask)}

    return _call(chosen, sizes, "", values, function, equations)


OPERATORS: dict[str, Callable[[random.Random], Call]] = {
    "tssa": _tssa,
    "causal_tssa": _causal_tssa,
    "primal_scores": _primal_scores,
    "exp_features": _exp_features,
    "pap": _pap,
    "softmax": _softmax,
    "scaled": _scaled,
    "xca": _xca,
    "linear": _of_queries_keys_values(_linear, _linear_naive, 130),
    "cosformer": _of_queries_keys_values(_cosformer, _cosformer_naive, 130),
    "performer": _of_queries_keys_values(_performer, _performer_naive, 65),
    "flowformer": _of_queries_keys_values(flow_attention, flow_attention_naive, 130),
    "yoso_e": _of_queries_keys_values(_yoso, _yoso_naive, 7, causal_too=False),
    "longformer": _of_queries_keys_values(_longformer, _longformer_naive, 130),
    "block_sparse": _of_queries_keys_values(_bigbird, _bigbird_naive, 65, causal_too=False),
    "linformer": _linformer,
}
"""Whatever computes the same in two ways; what computes in one alone is called through its mechanism."""
