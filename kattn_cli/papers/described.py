"""What a run is in the papers' words: their data set or task, their model, and what was run in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kattn_cli.recipe.model import reads_sequences
from kattn_cli.recipe.schema import Attention, Mechanism
from kattn_cli.runs.run import Run

PLAIN = "a plain ViT"
FAN, SEGMENTER = "FAN's architecture", "Segmenter"
ARCHITECTURES = {
    "vit": PLAIN,
    "tost": "ToST's architecture",
    "xcit": "XCiT's architecture",
    "fan": FAN,
    "segmenter": SEGMENTER,
}
NATIVE = {"digits": 8, "mnist": 28, "fashion_mnist": 28, "cifar10": 32, "cifar100": 32}
"""Pixels a side, where a recipe does not scale the images."""
TIMM = {"tiny": (12, 192), "small": (12, 384), "base": (12, 768), "large": (24, 1024)}
"""Layers and width of the vision transformers that timm has by these names."""
IMAGENET = {1000: "ImageNet-1K", 100: "ImageNet-100"}
"""By classes of a folder of images."""


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
PRIMAL = ("primal", "primal_plus")


@dataclass(frozen=True)
class Described:
    """A run as the papers' tables have it.

    Attributes:
        data: the data set by its name in recipes, or ImageNet's.
        model: the papers' model, see :func:`image_model` and :func:`sequence_model`; empty if it is none of theirs.
        facts: what was run, each in a few words: ``name``, ``size``, ``epochs``, ``device``; of images also
            ``pixels`` (if known), ``architecture`` and ``start``; of sequences those of ``length``, ``vocabulary``,
            ``context``, ``training`` (if fewer than usual), ``experts`` and ``pursuit`` (of RPC-Attention) that there
            are.
        shown: the facts that make a setting: runs that agree in them can be compared.
        tasks: of sequences: kind of table (``series``, ``lra``, ``sentences``, ``control``, ``control_costs``) → the
            paper's row; none for a language model.
        classes: of images: how many, 0 if the recipe does not say.
        place: see :func:`grid_place`.
        tokens: of sequences: N of the longest, 0 where the recipe does not say.
    """

    data: str
    model: str
    facts: Mapping[str, str]
    shown: tuple[str, ...]
    tasks: Mapping[str, str] = field(default_factory=dict)
    classes: int = 0
    place: str = ""
    tokens: int = 0

    @property
    def fine_tuned(self) -> bool:
        """Return whether it began from another run, as far as its recipe says."""
        return self.facts.get("start", "").startswith("fine-tuned")

    def setting(self, *measured: str, on: str = "") -> str:
        """Return ``listops (up to 128 tokens, 2 × 64)``: what was run, and how it was measured, on what."""
        kept = [self.facts[key] for key in self.shown if key in self.facts]
        return f"{on or self.facts['name']} ({', '.join([*kept, *measured])})"


def is_sequence_run(run: Run) -> bool:
    """Return whether the run's model reads sequences, and not images."""
    return reads_sequences(run.recipe.get("model"))


def sequence_run(run: Run) -> Described:
    """Return what a run is, by its recipe and manifest; its model must read sequences."""
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
    found = variant(run, sequence_model(recipe["attention"], model["depth"], size))
    shown = ("length", "vocabulary", "context", "training", "size", "experts")
    place, tokens = grid_place(run, found), _tokens(data)
    return Described(data["name"], found, facts, shown, _tasks(data), place=place, tokens=tokens)


def sequence_model(attention: Mapping[str, Any], depth: int, size: str = "") -> str:
    """Return the papers' model that layers of these mechanisms make, empty if none.

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
    counts = " or ".join(map(str, dict.fromkeys(iterations)))
    return {"pursuit": f"{counts} iterations in {len(iterations)} of {depth} layers"} if iterations else {}


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
    """Return how long the sequences are, in what, and how many to train on where they are fewer than usual."""
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


def _tokens(data: Mapping[str, Any]) -> int:
    """Return how many tokens the longest sequence has, 0 where the recipe does not say."""
    if data["name"] in ("pixels", "pathfinder"):
        return int(data["size"]) ** 2
    return int(data.get("max_length") or data.get("seq_len") or data.get("context") or 0)


def image_run(run: Run) -> Described:
    """Return what a run is, by its recipe and manifest; its model must read images."""
    recipe = run.recipe
    data, model, epochs = recipe.get("data") or {}, recipe.get("model") or {}, (recipe.get("train") or {}).get("epochs")
    name, classes = str(data.get("name", "digits")), int(data.get("classes") or 0)
    if name == "imagefolder":
        name = IMAGENET.get(classes, Path(data["root"]).name)
    depth, size = _image_size(model)
    pixels = data.get("image_size") or NATIVE.get(name)
    facts = {
        "name": name,
        **({"pixels": f"{pixels} × {pixels} pixels"} if pixels else {}),
        "size": size,
        "architecture": ARCHITECTURES.get(model.get("name", "vit"), PLAIN),
        "start": _start(recipe.get("init_from"), model.get("weights")),
        "epochs": f"{epochs} epoch{'' if epochs == 1 else 's'}",
        "device": str(run.manifest.get("device")),
    }
    layers = Attention(**recipe["attention"]).per_layer(depth)
    found = "" if model.get("causal") else image_model(layers, model.get("feed_forward") == "ista")
    shown = ("pixels", "size", *(["start"] if facts["start"].startswith("fine-tuned") else []), "epochs")
    return Described(name, found, facts, shown, classes=classes)


def image_model(layers: list[Mechanism], ista: bool = False) -> str:
    """Return the papers' model that layers of these mechanisms make, empty if none.

    A mechanism in all layers has its own name; ``primal_plus`` is primal in the last layer alone and softmax below;
    both with what :func:`ablated` says of them.
    ``rpc 4`` iterates in layer 1 alone, symmetric attention above, ``rpc 2 all`` in all layers; ``rpc asymmetric`` is
    the former with softmax attention above and iterations of its keys alone, 4 of them if nothing else is said, and
    ``rpc sym/asym`` with softmax attention above and RPC-Attention in layer 1. ``tssa no norm`` and ``tssa ista`` are
    of ToST's ablation.
    """
    names = [one.name for one in layers]
    first, above = layers[0], set(names[1:])
    if first.name == "rpc":
        return _rpc(layers)
    if names[-1] == "primal" and set(names[:-1]) <= {"softmax"}:
        return " ".join(["primal_plus" if len(names) > 1 else "primal", *ablated(layers[-1].options)])
    if above - {first.name}:
        return ""
    if first.name == "primal":
        return " ".join(["primal", *ablated(first.options)])
    if first.name == "tssa":
        plain = ["tssa"] if first.options.get("normalize", True) else ["tssa no norm"]
        return " ".join([*plain, *(["ista"] if ista else [])])
    return first.name


WITHOUT_OUTLIERS = 1e6
"""λ from which on no entry of a key is an outlier: S = 0, a control of ours."""


def _rpc(layers: list[Mechanism]) -> str:
    options, above = layers[0].options, {one.name for one in layers[1:]}
    iterations, asymmetric = options["iterations"], options.get("asymmetric") == "iterate"
    if options.get("lambda", 0) >= WITHOUT_OUTLIERS or options.get("convention") == "textbook":
        return ""
    if above <= {"rpc"}:
        return "" if asymmetric else f"rpc {iterations} all"
    if above == {"softmax"}:
        kind = "rpc asymmetric" if asymmetric else "rpc sym/asym"
        return kind if iterations == 4 else f"{kind} {iterations}"
    return f"rpc {iterations}" if above == {"symmetric"} and not asymmetric else ""


def _image_size(model: Mapping[str, Any]) -> tuple[int, str]:
    """Return how many layers, and them by width as ``12 × 192``; of a model of timm's that is not known its name."""
    if "dim" in model or model.get("name", "vit") in ARCHITECTURES:
        depth = int(model.get("depth", 3))
        return depth, f"{depth} × {model.get('dim', 48)}"
    named = re.search("|".join(TIMM), str(model["name"]))
    depth, dim = TIMM[named[0]] if named else (12, 0)
    return depth, f"{depth} × {dim}" if dim else str(model["name"])


def _start(init_from: str | None, weights: str | None) -> str:
    if init_from:
        whence = "ImageNet-1K" if "imagenet" in Path(init_from).parts else "/".join(Path(init_from).parts[-3:-1])
        return f"fine-tuned from {whence}"
    return "from weights of others" if weights else "from scratch"


def ablated(options: Mapping[str, Any]) -> list[str]:
    """Return what a layer of Primal-Attention is but the paper's own, in the words of the tables.

    ``e``: without r-scores (Table 8); ``data-independent``: its projections (Tables 11 and 12); ``exp``: its feature
    map (Remark 4.1).
    """
    parts = ["e"] if options.get("scores") == "e" else []
    parts += ["data-independent"] if options.get("projection") == "data-independent" else []
    return parts + (["exp"] if options.get("feature_map") == "exp" else [])


def variant(run: Run, model: str) -> str:
    """Return ``model`` with :func:`ablated`, as ``primal e``, if it is of Primal-Attention, else itself.

    The projections of a decoder do not count, which has data-independent ones alone.
    """
    if model not in PRIMAL:
        return model
    options, encoder = _options(run)
    return " ".join([model, *(part for part in ablated(options) if encoder or part != "data-independent")])


def grid_place(run: Run, model: str) -> str:
    """Return ``s=30 eta=0.1`` of a run of Primal. (Table 9), ``s=32`` of Primal.+DT (Table 10).

    Nothing of others, or where the recipe does not say.
    """
    options = _options(run)[0] if model in PRIMAL else {}
    if model == "primal" and {"s", "eta"} <= options.keys():
        return f"s={options['s']} eta={options['eta']:g}"
    acts = model == "primal_plus" and run.recipe["model"]["name"] == "decision_transformer"
    return f"s={options['s']}" if acts and "s" in options else ""


def _options(run: Run) -> tuple[dict[str, Any], bool]:
    """Return the options of the last layer, and whether the model is an encoder."""
    recipe = run.recipe
    model = recipe["model"]
    last = Attention(**recipe["attention"]).per_layer(model["depth"])[-1]
    return dict(last.options), model["name"] == "encoder"
