"""Reformer's attention against the authors' numbers, two independent programs, and attention without hashing."""

from __future__ import annotations

import importlib
from typing import Any, Literal

import pytest
import torch
from against_naive import draw
from mechanisms import (
    check_attention_matrix,
    check_causality,
    check_padding,
    first_tokens,
    let_through,
    take_over,
)
from reference_vectors import assert_equal, check_outputs, load

from kattn_cli.attention.heads import join_heads, split_projections
from kattn_cli.attention.reformer import ReformerAttention
from kattn_cli.kernels.reformer import lsh_buckets


def without_output_projection(module: ReformerAttention) -> ReformerAttention:
    let_through(module.proj)
    return module


def test_equals_the_primal_authors_baseline() -> None:
    """64 tokens, which are not hashed. The file holds no gradients of parameters; the biases of Q, K, V are unused."""
    vector = load("lra_reformer__nopad_N64_C24_h2_hash2")
    module = ReformerAttention(24, 2, seq_len=64, convention="reference", qkv_bias=False).double()
    module.load_state_dict(
        {
            "kv.weight": torch.cat((vector["attn.query_key.weight"], vector["attn.value.weight"])),
            "proj.weight": vector["ff.weight"],
            "proj.bias": vector["ff.bias"],
            "rotations": module.rotations,
        }
    )
    check_outputs(module, vector)


@pytest.mark.parametrize("hashes", [1, 3])
@pytest.mark.parametrize("valid", [256, 180])
def test_reference_equals_transformers(hashes: int, valid: int) -> None:
    """Hashing, sorting and attention, with the rotations that their seed draws."""
    modeling = importlib.import_module("transformers.models.reformer.modeling_reformer")
    config = modeling.ReformerConfig(
        hidden_size=24,
        num_attention_heads=3,
        attention_head_size=8,
        num_hashes=hashes,
        lsh_attn_chunk_length=32,
        lsh_attention_probs_dropout_prob=0.0,
        num_buckets=None,
        hash_seed=7,
        is_decoder=False,
        max_position_embeddings=256,
    )
    theirs = modeling.LSHSelfAttention(config).double()
    ours = ReformerAttention(
        24, 3, seq_len=256, hashes=hashes, chunk=32, convention="reference", qkv_bias=False
    ).double()
    x, mask = draw(2, 256, 24), first_tokens(256, 256, valid)
    expected = theirs(x, attention_mask=mask.double()).hidden_states
    torch.manual_seed(7)
    ours.rotations.copy_(draw(3, 8, hashes, 8).transpose(1, 2))
    take_over(ours.kv, theirs.query_key, theirs.value)
    assert_equal(without_output_projection(ours)(x, mask)[mask], expected[mask])


@pytest.mark.parametrize("hashes", [1, 2, 4])
def test_paper_equals_reformer_pytorch(hashes: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Within buckets, repeated keys counted once: they add 1e-9 to that count, hence the tolerance."""
    package = importlib.import_module("reformer_pytorch.reformer_pytorch")
    theirs = package.LSHAttention(
        bucket_size=16, n_hashes=hashes, allow_duplicate_attention=False, attend_across_buckets=False
    )
    ours = without_output_projection(ReformerAttention(24, 3, seq_len=128, hashes=hashes, chunk=16).double())
    x = draw(2, 128, 24)
    q, v = split_projections(ours.kv(x), 3, 2)
    buckets = lsh_buckets(q, ours.rotations) + 16 * torch.arange(hashes)[:, None]
    monkeypatch.setattr(theirs, "hash_vectors", lambda *_, **__: buckets.flatten(0, 1).flatten(1))
    expected = theirs(q.flatten(0, 1), v.flatten(0, 1))[0].unflatten(0, (2, 3))
    torch.testing.assert_close(ours(x), join_heads(expected), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("causal", [False, True])
def test_without_hashing_equals_reformer_pytorch(causal: bool) -> None:
    package = importlib.import_module("reformer_pytorch.reformer_pytorch")
    ours = without_output_projection(ReformerAttention(24, 3, seq_len=33, causal=causal).double())
    x = draw(2, 33, 24)
    q, v = split_projections(ours.kv(x), 3, 2)
    expected = package.FullQKAttention(causal=causal)(q.flatten(0, 1), v.flatten(0, 1))[0].unflatten(0, (2, 3))
    assert_equal(ours(x), join_heads(expected))


@pytest.mark.parametrize("causal", [False, True])
def test_many_rounds_are_attention_without_hashing(causal: bool) -> None:
    """With few buckets every pair meets in one of 60 rounds."""
    hashed = ReformerAttention(24, 3, seq_len=13, causal=causal, hashes=60, chunk=12).double()
    plain = ReformerAttention(24, 3, seq_len=13, causal=causal).double()
    plain.load_state_dict({**hashed.state_dict(), "rotations": plain.rotations})
    x = draw(2, 13, 24)
    assert_equal(hashed(x), plain(x))
    assert_equal(hashed.attention_matrix(x), plain.attention_matrix(x))


def test_by_hand() -> None:
    """Three tokens in the plane, one head, values of width 2: each looks past itself to unit keys, over √2."""
    module = without_output_projection(ReformerAttention(2, 1, seq_len=3, qkv_bias=False).double())
    with torch.no_grad():
        module.kv.weight.copy_(torch.eye(2).repeat(2, 1))
    x = torch.tensor([[[3.0, 0.0], [0.0, 2.0], [1.0, 1.0]]], dtype=torch.float64)
    first = torch.tensor([0, 3 * 0.5**0.5 / 2**0.5], dtype=torch.float64).softmax(0)  # of tokens 1 and 2
    assert_equal(module(x)[0, 0], first[0] * x[0, 1] + first[1] * x[0, 2])


@pytest.mark.parametrize("convention", ["paper", "reference"])
@pytest.mark.parametrize("n", [9, 47])
def test_attention_matrix_is_what_multiplies_the_values(convention: Literal["paper", "reference"], n: int) -> None:
    module = ReformerAttention(24, 3, seq_len=n, hashes=3, chunk=10, convention=convention).double()
    matrix = check_attention_matrix(module, draw(2, n, 24), first_tokens(n, n, n - 4))
    assert_equal(matrix.sum(-1), torch.ones(2, 3, n, dtype=torch.float64))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("chunk", [64, 10])
@pytest.mark.parametrize("n", [40, 11, 10, 2, 1])
def test_padding_changes_nothing(causal: bool, chunk: int, n: int) -> None:
    """Hashed or not, beside a sample without padding and one of nothing else."""
    module = ReformerAttention(24, 3, seq_len=50, causal=causal, chunk=chunk).double()
    check_padding(module, draw(3, 47, 24), first_tokens(47, 47, n, 0))


@pytest.mark.parametrize("chunk", [64, 3])
@pytest.mark.parametrize("masked", [False, True])
def test_causal_outputs_do_not_see_the_future(chunk: int, masked: bool) -> None:
    """Not even through the places where chunks end: later tokens fall into other buckets here."""
    module = ReformerAttention(24, 3, seq_len=47, causal=True, chunk=chunk, hashes=3).double()
    check_causality(module, draw(2, 47, 24), first_tokens(47, 47, 31) if masked else None, tolerance=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_lower_precision_and_autocast_of_the_causal_form(dtype: torch.dtype) -> None:
    module = ReformerAttention(24, 3, seq_len=47, chunk=5, causal=True).to(dtype)
    x = torch.randn(2, 47, 24, dtype=dtype)
    out = module(x)
    assert out.dtype == dtype
    out.sum().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in module.parameters())
    with torch.autocast("cpu", torch.bfloat16):
        assert module(x).isfinite().all()


@pytest.mark.parametrize("options", [{}, {"convention": "reference"}, {"causal": True}], ids=str)
def test_hashing_works_on_the_meta_device(options: dict[str, Any]) -> None:
    """With a mask, which the contract does not give there."""
    with torch.device("meta"):
        module = ReformerAttention(24, 3, seq_len=47, chunk=5, **options)
        assert module(torch.empty(2, 47, 24), torch.ones(2, 47, dtype=torch.bool)).shape == (2, 47, 24)


def test_refusals() -> None:
    with pytest.raises(ValueError, match=r"^convention = reference has no causal form$"):
        ReformerAttention(24, 3, seq_len=9, causal=True, convention="reference")


def test_flops_by_hand() -> None:
    """One head of width 2. Four tokens in one chunk; then in chunks of two, four buckets, two rounds."""
    projections = 4 * 4 * (2 * 2 + 1) + 4 * 2 * (2 * 2 + 1) + 5 * 4 * 2
    module = ReformerAttention(2, 1, seq_len=4)
    assert module.flops(4) == projections + 4 * 4 * (4 * 2 + 5)
    module = ReformerAttention(2, 1, seq_len=4, chunk=2)
    hashing = 4 * 2 * 2 * 2 + 4 * 4
    assert module.flops(4) == projections + 2 * (hashing + 4 * 3 + 16 * (4 * 2 + 5 + 2 * 4))
