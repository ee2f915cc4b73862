"""What a run on sequences is of: the papers' task and model, and what was run in its place."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kattn_cli.recipe.model import reads_sequences
from kattn_cli.recipe.schema import Attention
from kattn_cli.runs.run import Run

LRA = {"listops": "ListOps", "imdb": "Text", "aan": "Retrieval", "pixels": "Image", "pathfinder": "Pathfinder"}
SENTENCES = {"sst2": "SST-2", "sst5": "SST-5", "imdb": "IMDB"}
CORPORA = {
    "openwebtext": "OpenWebText",
    "lambada": "LAMBADA",
    "wikitext2": "WikiText",
    "wikitext103": "WikiText",
    "ptb": "PTB",
}
"""Data sets by their names in recipes, as the papers' tables call them."""
LEVELS = {"medium": "Medium", "medium_replay": "Medium-Replay", "medium_expert": "Medium-Expert"}
BODIES = {"halfcheetah": "HalfCheetah", "hopper": "Hopper", "walker2d": "Walker"}
"""Levels and environments of trajectories, as Primal-Attention's tables call them."""
TRAJECTORIES = ("d4rl", "minari")
PATH_X = 128
WHOLE = {"listops": 96_000, "pathfinder": 160_000}
"""Sequences to train on where nothing else is said."""
GPT2_SIZES = {"24 × 1024": "medium", "36 × 1280": "large"}
"""By layers and width."""


@dataclass(frozen=True)
class SequenceRun:
    """A run as the tables have it.

    ``tasks``: kind of table (``series``, ``lra``, ``sentences``, ``control``, ``control_costs``) → the paper's row;
    none for a language model. ``data``: the data set's name in recipes. ``model``: see :func:`paper_model`. ``facts``:
    what was run, each in a few words: ``name``, then those of ``length``, ``vocabulary``, ``context`` and ``training``
    (if fewer than usual) that there are, ``size``, ``experts``, ``pursuit`` (of RPC-Attention), ``epochs``,
    ``device``.
    """

    data: str
    tasks: Mapping[str, str]
    model: str
    facts: Mapping[str, str]

    def setting(self, *more: str, on: str = "") -> str:
        """``listops (up to 128 tokens, 2 × 64)``: what was run, and how it was measured, ``on`` other data perhaps."""
        kept = [text for key, text in self.facts.items() if key not in ("name", "pursuit", "epochs", "device")]
        return f"{on or self.facts['name']} ({', '.join([*kept, *more])})"


def is_sequence_run(run: Run) -> bool:
    """Whether the run's model reads sequences, and not images."""
    return reads_sequences(run.recipe.get("model"))


def sequence_run(run: Run) -> SequenceRun:
    """What a run is, by its recipe and manifest; its model must read sequences."""
    recipe = run.recipe
    data, model = recipe["data"], recipe["model"]
    size, epochs = f"{model['depth']} × {model['dim']}", recipe["train"]["epochs"]
    facts = {
        "name": _name(data),
        **_lengths(data),
        "size": size,
        **_experts(model.get("experts")),
        **_pursuit(recipe["attention"], model["depth"]),
        "epochs": f"{epochs} epoch{'s' if epochs > 1 else ''}",
        "device": str(run.manifest.get("device")),
    }
    return SequenceRun(data["name"], _tasks(data), paper_model(recipe["attention"], model["depth"], size), facts)


def paper_model(attention: Mapping[str, Any], depth: int, size: str = "") -> str:
    """The papers' model that layers of these mechanisms make, empty if none.

    A mechanism in all layers has its own name; ``primal_plus`` is primal in the last layer alone and softmax below;
    ``rpc`` is RPC-Attention in all or the first layers and symmetric attention above, ``rpc asymmetric`` if it
    iterates in softmax attention. TSSA in GPT-2's greater sizes is ``tssa medium`` and ``tssa large``.
    """
    layers = Attention(**attention).per_layer(depth)
    names = [one.name for one in layers]
    first, last = names[0], names[-1]
    if last == "primal" and set(names[:-1]) == {"softmax"}:
        return "primal_plus"
    if first == "rpc":
        asymmetric = layers[0].options.get("asymmetric") == "iterate"
        rest = {"rpc", "softmax" if asymmetric else "symmetric"}
        if set(names) - rest or "rpc" in names[names.count("rpc") :]:
            return ""
        return "rpc asymmetric" if asymmetric else "rpc"
    if len(set(names)) > 1:
        return ""
    return f"tssa {GPT2_SIZES[size]}" if first == "tssa" and size in GPT2_SIZES else first


def _experts(experts: Mapping[str, Any] | None) -> dict[str, str]:
    return {"experts": f"{experts['count']} experts, {experts['top']} a token"} if experts else {}


def _pursuit(attention: Mapping[str, Any], depth: int) -> dict[str, str]:
    iterations = [one.options["iterations"] for one in Attention(**attention).per_layer(depth) if one.name == "rpc"]
    told = " or ".join(map(str, dict.fromkeys(iterations)))
    return {"pursuit": f"{told} iterations in {len(iterations)} of {depth} layers"} if iterations else {}


def _name(data: Mapping[str, Any]) -> str:
    if data["name"] in TRAJECTORIES:
        return " ".join(str(data[key]) for key in ("environment", "level") if data.get(key))
    if data["name"] == "text":
        return f"text {Path(data.get('path') or data.get('train') or '').stem}".strip()
    return str(data["set"] if data["name"] == "uea" else data["name"])


def _tasks(data: Mapping[str, Any]) -> dict[str, str]:
    name = data["name"]
    if name == "uea":
        return {"series": data["set"]}
    if name in TRAJECTORIES:
        body, level = BODIES.get(data.get("environment") or ""), LEVELS.get(data.get("level") or "")
        return {"control": f"{level} {body}", "control_costs": level} if body and level else {}
    tasks = {"lra": LRA[name]} if name in LRA else {}
    if name == "pathfinder" and data["size"] == PATH_X:
        tasks = {"lra": "Path-X"}
    return {**tasks, **({"sentences": SENTENCES[name]} if name in SENTENCES else {})}


def _lengths(data: Mapping[str, Any]) -> dict[str, str]:
    """How long the sequences are, in what, and how many to train on where they are fewer than usual."""
    name, facts = data["name"], dict[str, str]()
    if name in TRAJECTORIES:
        return {"context": f"context {data['context']}"}
    vocabulary = Path(data.get("vocabulary_from") or data.get("vocabulary") or "bytes").name
    if name == "listops":
        facts["length"] = f"up to {data['max_length']:,} tokens"
    elif name in ("pixels", "pathfinder"):
        facts["length"] = f"{data['size']} × {data['size']} pixels"
    elif "seq_len" in data:
        unit = vocabulary if vocabulary in ("bytes", "characters", "words") else "tokens"
        facts["length"] = f"up to {data['seq_len']:,} {unit}"
    elif "context" in data:
        facts |= {"vocabulary": vocabulary, "context": f"context {data['context']:,}"}
    if name in LRA and data.get("train") not in (None, WHOLE.get(name)):
        facts["training"] = f"{data['train']:,} to train on"
    return facts
