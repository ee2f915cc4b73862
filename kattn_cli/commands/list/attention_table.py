"""``kattn list attention --markdown``: the table of mechanisms that the README carries."""

from __future__ import annotations

import inspect
import typing

from kattn_cli.attention import BASELINES, MECHANISMS
from kattn_cli.attention.mechanism import AttentionMechanism

HEADER = ("name", "paper", "cost in N", "causal", "mask", "conventions", "what the authors' program does instead")


def attention_table() -> str:
    """Every mechanism of the papers, then every baseline, as Markdown."""
    rows = [HEADER, ("---",) * len(HEADER)]
    for attentions in (MECHANISMS, BASELINES):
        rows += [_row(name, cls) for name, cls in attentions.items()]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _row(name: str, cls: type[AttentionMechanism]) -> tuple[str, ...]:
    card = cls.card
    causal = _yes(cls.supports_causal) + (", decodes" if hasattr(cls, "decode") else "")
    masked = _yes("mask" in inspect.signature(cls.forward).parameters)
    return f"`{name}`", card.paper, card.cost, causal, masked, ", ".join(_conventions(cls)), card.differs


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _conventions(cls: type[AttentionMechanism]) -> tuple[str, ...]:
    hints = typing.get_type_hints(cls.__init__)
    return typing.get_args(hints["convention"]) if "convention" in hints else ()
