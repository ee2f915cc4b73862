"""A new mechanism is one file and one line: it is listed, trained, measured and drawn like the others."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from command_line import kattn
from torch import Tensor, nn

from kattn_cli.attention import ATTENTIONS, Card, attention_class
from kattn_cli.attention.mechanism import AttentionMechanism
from kattn_cli.figures.style import Palette


class MeanAttention(AttentionMechanism):
    """Every token receives the mean token: ``(B, N, C)`` to the same."""

    def __init__(self, dim: int, heads: int, *, seq_len: int, causal: bool = False) -> None:
        super().__init__(dim, heads, causal)
        self.proj = nn.Linear(dim, dim)

    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        return self.proj(x.mean(1, keepdim=True).expand_as(x))

    def flops(self, n: int) -> int:
        return n * self.dim + 2 * n * self.dim**2


class ToyCard(Card):
    """Its file is this one, which is not in the room of mechanisms."""

    @property
    def cls(self) -> type[AttentionMechanism]:
        return MeanAttention


@pytest.fixture
def toy(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setitem(ATTENTIONS, "mean", ToyCard("mean:MeanAttention", "nobody, eq. 0", "N", "#123456"))
    return "mean"


def test_it_is_found_by_name(toy: str) -> None:
    assert attention_class(toy) is MeanAttention


def test_it_is_listed(toy: str, capfd: pytest.CaptureFixture[str]) -> None:
    said = kattn(capfd, "list", "attention", "--markdown")
    assert said.out.splitlines()[-1].startswith("| `mean` | nobody, eq. 0 | N | no | yes |")


def test_it_trains(toy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    recipe = tmp_path / "toy.yaml"
    recipe.write_text("name: toy\nattention: mean\ndata: {name: digits}\nmodel: {depth: 1}\ntrain: {epochs: 1}\n")
    said = kattn(capfd, "train", recipe, "--results", tmp_path, "--device", "cpu")
    assert said.code == 0, said.err
    assert (tmp_path / "toy/0/metrics.csv").is_file()


def test_it_is_measured(toy: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    sizes = ("--n", 16, "--dim", 8, "--heads", 2, "--seconds", 0.01)
    said = kattn(capfd, "complexity", "--attention", toy, *map(str, sizes), "--device", "cpu", "--results", tmp_path)
    assert said.code == 0, said.err
    assert toy in said.out


def test_every_card_names_a_class_that_keeps_the_contract() -> None:
    for card in ATTENTIONS.values():
        module = card.cls(8, 2, seq_len=16)  # type: ignore[call-arg]
        assert module(torch.zeros(1, 16, 8)).shape == (1, 16, 8)


def test_every_mechanism_has_the_colour_of_its_card() -> None:
    colours = {Palette().line(name, name)["color"] for name in ATTENTIONS}
    assert colours == {card.colour for card in ATTENTIONS.values()}
    assert len(colours) == len(ATTENTIONS)
