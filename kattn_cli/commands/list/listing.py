"""``kattn list``: what there is to choose from."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pydantic import BaseModel
    from rich.table import Table

    from kattn_cli.attention import Card
    from kattn_cli.attention.mechanism import AttentionMechanism

Rows = Iterable[tuple[str, ...]]


def _attention(results: Path) -> Rows:
    from kattn_cli.attention import attention_classes
    from kattn_cli.attention.options import all_options

    for name, cls in attention_classes().items():
        options = ", ".join(f"{key}: {_yaml(value)}" for key, value in all_options(name, {}).items())
        module = inspect.getmodule(cls)
        yield name, (inspect.getdoc(module) or "").splitlines()[0], options


def _yaml(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _data(results: Path) -> Rows:
    from kattn_cli.commands.data.command import data_rows

    yield from data_rows()


def _models(results: Path) -> Rows:
    from kattn_cli.models.vit import timm_names
    from kattn_cli.recipe.model import PRESETS, models_by_name
    from kattn_cli.tasks import kinds

    known = models_by_name(kinds())
    for model in dict.fromkeys(known.values()):
        names = ", ".join(name for name, kind in known.items() if kind is model)
        yield names, f"of one's own size: {_keys(model)}"
    for name, sizes in PRESETS.items():
        if name in known:
            continue
        kind, *rest = (f"{key}: {value}" for key, value in sizes.items())
        yield name, f"{kind.removeprefix('name: ')}, {', '.join(rest)}"
    for name in timm_names():
        if name.endswith("_patch16_224"):
            yield name, "timm"


def _keys(model: type[BaseModel]) -> str:
    return ", ".join(key for key in model.model_fields if key != "name")


def _attacks(results: Path) -> Rows:
    from kattn_cli.attacks import ATTACKS

    for name, attack in ATTACKS.items():
        schedule = f", {attack.schedule}" if attack.schedule else ""
        yield name, attack.description, f"{attack.access}, {' '.join(attack.norms)}{schedule}"


def _recipes(results: Path) -> Rows:
    from kattn_cli.recipe.files import find_recipes, shipped_recipes
    from kattn_cli.recipe.load import read_notes

    for name in shipped_recipes():
        notes = read_notes(find_recipes(name)[0])
        yield name, "; ".join(part for part in (notes.about.removesuffix("."), notes.expected) if part)


def _runs(results: Path) -> Rows:
    from kattn_cli.runs.find import snapshots
    from kattn_cli.tables.measures import best_epoch

    for run in snapshots(results, unreadable=True):
        if run.status == "unreadable":
            yield run.folder.relative_to(results).as_posix(), run.status, "", ""
            continue
        manifest = run.manifest
        yield (
            run.folder.relative_to(results).as_posix(),
            run.status,
            str(manifest.get("start") or "")[:16].replace("T", " "),
            best_epoch(run),
        )


LISTS: dict[str, Callable[[Path], Rows]] = {
    "attention": _attention,
    "data": _data,
    "models": _models,
    "attacks": _attacks,
    "recipes": _recipes,
    "runs": _runs,
}
"""What can be listed: the rows of each kind, each from its registry, or from the results folder."""
NOTES = {
    "data": "kattn data check NAME says of each file whether it is there; kattn data fetch NAME downloads.",
    "models": "A preset's sizes can be changed: {name: tost_tiny, depth: 6}. Any other size and patch of timm's "
    "vision_transformer and deit works too, by its name there; weights: timm, or a file, begins from its weights.",
    "attention": "One's own: name: my_file.py:MyAttention",
}


def listing(kind: str, results: Path) -> Table:
    """Return a table of one kind of :data:`LISTS`."""
    from rich.table import Table

    from kattn_cli.recipe.files import recipes_folder

    captions = {**NOTES, "runs": f"under {results}/", "recipes": f"in {recipes_folder()}"}
    rows = list(LISTS[kind](results))
    table = Table(caption=captions.get(kind), show_header=False, caption_justify="left", box=None, padding=(0, 3, 0, 0))
    longest = max((len(row[0]) for row in rows), default=0)
    table.add_column(overflow="fold", min_width=min(longest, 36))
    for _ in range(max((len(row) for row in rows), default=1) - 1):
        table.add_column(overflow="fold")
    for row in rows:
        table.add_row(*row)
    return table


COLUMNS = (
    "name",
    "paper",
    "cost in N",
    "causal",
    "mask",
    "conventions",
    "what the authors' program does instead",
)


def attention_table() -> str:
    """Return every mechanism of the papers, then every baseline, as the Markdown table that the README carries."""
    from kattn_cli.attention import ATTENTIONS

    rows = [COLUMNS, ("---",) * len(COLUMNS), *(_mechanism_row(name, card) for name, card in ATTENTIONS.items())]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _mechanism_row(name: str, card: Card) -> tuple[str, ...]:
    cls = card.cls
    causal = _yes(cls.supports_causal) + (", decodes" if hasattr(cls, "decode") else "")
    masked = _yes("mask" in inspect.signature(cls.forward).parameters)
    return f"`{name}`", card.paper, card.cost, causal, masked, ", ".join(_conventions(cls)), card.differs


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def _conventions(cls: type[AttentionMechanism]) -> tuple[str, ...]:
    hints = typing.get_type_hints(cls.__init__)
    return typing.get_args(hints["convention"]) if "convention" in hints else ()
