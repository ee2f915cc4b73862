"""What a run on images is of: the papers' data set and model, and what was run in its place."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kattn_cli.papers.sequence_variants import ablated
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


@dataclass(frozen=True)
class ImageRun:
    """A run as the tables have it.

    ``data``: the data set by its name in recipes, or ImageNet's. ``classes``: how many, 0 if the recipe does not say.
    ``model``: see :func:`image_model`; none of a causal one. ``facts``: what was run, each in a few words: ``name``,
    ``pixels`` (if known), ``size``, ``architecture``, ``start``, ``epochs``, ``device``.
    """

    data: str
    classes: int
    model: str
    facts: Mapping[str, str]

    @property
    def fine_tuned(self) -> bool:
        """Whether it began from another run."""
        return self.facts["start"].startswith("fine-tuned")

    def setting(self) -> str:
        """``fashion_mnist (28 × 28 pixels, 3 × 48, 2 epochs)``: runs of one setting can be compared."""
        start = [self.facts["start"]] if self.fine_tuned else []
        told = [self.facts[key] for key in ("pixels", "size") if key in self.facts]
        return f"{self.facts['name']} ({', '.join([*told, *start, self.facts['epochs']])})"


def image_run(run: Run) -> ImageRun:
    """What a run is, by its recipe and manifest; its model must read images."""
    recipe = run.recipe
    data, model, epochs = recipe.get("data") or {}, recipe.get("model") or {}, (recipe.get("train") or {}).get("epochs")
    name, classes = str(data.get("name", "digits")), int(data.get("classes") or 0)
    if name == "imagefolder":
        name = IMAGENET.get(classes, Path(data["root"]).name)
    depth, size = _size(model)
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
    return ImageRun(name, classes, found, facts)


def image_model(layers: list[Mechanism], ista: bool = False) -> str:
    """The papers' model that layers of these mechanisms make, empty if none.

    A mechanism in all layers has its own name; ``primal_plus`` is primal in the last layer alone and softmax below;
    both with what :func:`~kattn_cli.papers.sequence_variants.ablated` says of them.
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


def _rpc(layers: list[Mechanism]) -> str:
    options, above = layers[0].options, {one.name for one in layers[1:]}
    iterations, asymmetric = options["iterations"], options.get("asymmetric") == "iterate"
    if above <= {"rpc"}:
        return "" if asymmetric else f"rpc {iterations} all"
    if above == {"softmax"}:
        kind = "rpc asymmetric" if asymmetric else "rpc sym/asym"
        return kind if iterations == 4 else f"{kind} {iterations}"
    return f"rpc {iterations}" if above == {"symmetric"} and not asymmetric else ""


def _size(model: Mapping[str, Any]) -> tuple[int, str]:
    """How many layers, and them by width as ``12 × 192``; of one of timm's that is not known its name."""
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
