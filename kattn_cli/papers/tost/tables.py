"""The ToST paper's tables: ImageNet and transfer, the ablation, Long-Range Arena, language."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kattn_cli.papers.beside import ImageTable, PaperTable, SequenceTable, on_imagenet
from kattn_cli.papers.described import ARCHITECTURES, PLAIN, Described
from kattn_cli.papers.tost import PAPER

CIFAR10 = "cifar10"
CLEAN = {"clean": ("top1",)}
TRANSFER = {
    CIFAR10: "CIFAR10",
    "cifar100": "CIFAR100",
    "flowers102": "Oxford Flowers-102",
    "pets": "Oxford-IIIT-Pets",
}
"""Data sets by their names in recipes, as the paper's Table 2 calls them."""
SIZES = {"12 × 192": "tiny", "12 × 384": "small", "24 × 512": "medium", "12 × 768": "base"}
OWN = {"tssa": ARCHITECTURES["tost"], "xca": ARCHITECTURES["xcit"]}
MODELS = ("tssa", "xca", "softmax", "mssa")
ABLATED = ("tssa ista", "tssa no norm", "tssa no norm ista")


def _is_of_the_ablation(run: Described) -> bool:
    """Return whether it is ToST trained from scratch on CIFAR-10, or without a part of it."""
    if run.facts["architecture"] != OWN["tssa"] or run.fine_tuned:
        return False
    return run.model in ABLATED or (run.model == "tssa" and run.data == CIFAR10)


class _Transfer(ImageTable):
    def model(self, run: Described) -> str | None:
        """Return the model with its size or, if the paper has it in no such size, with ``small``, as all three have."""
        if run.model not in MODELS or _is_of_the_ablation(run):
            return None
        known = {model for table, _, _, model in PAPER.printed if table in self.tables}
        sizes = (SIZES.get(run.facts["size"], "small"), "small")
        return next((name for name in (f"{run.model} {size}" for size in sizes) if name in known), run.model)

    def row(self, run: Described, kind: str, row: str) -> str:
        """Return the row of the set of that name; for others ImageNet if trained from scratch, else CIFAR-10."""
        return TRANSFER.get(run.data, TRANSFER[CIFAR10] if run.fine_tuned else "ImageNet")

    def baselines(self, model: str) -> Sequence[str]:
        """Return the ViT of about that size."""
        return ("softmax base",) if model.endswith((" medium", " base")) else ("softmax small",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        mechanism, _, word = model.partition(" ")
        size = next((size for size, name in SIZES.items() if name == word), "12 × 384")
        facts = {**on_imagenet(size, 400), "architecture": OWN.get(mechanism, PLAIN)}
        if row != "ImageNet":
            name = next(ours for ours, theirs in TRANSFER.items() if theirs == row)
            facts |= {"name": name, "start": "fine-tuned from ImageNet-1K"}
        no_epochs = mechanism not in OWN or row != "ImageNet"
        return {key: value for key, value in facts.items() if key != "epochs" or not no_epochs}


class _Ablation(ImageTable):
    def model(self, run: Described) -> str | None:
        return run.model if _is_of_the_ablation(run) else None

    def row(self, run: Described, kind: str, row: str) -> str:
        return TRANSFER[CIFAR10]

    def baselines(self, model: str) -> Sequence[str]:
        return ("tssa",)

    def own(self, model: str, row: str) -> Mapping[str, str]:
        return {"name": CIFAR10, "size": "12 × 384", "epochs": "400 epochs"}


TABLES: list[PaperTable] = [
    _Transfer(
        "Table 2: ImageNet and transfer",
        ("table2",),
        CLEAN,
        "The paper's ViTs are DeiT's published weights. What has none of its sizes is beside its small models.",
    ),
    _Ablation("Table 8: ablation of normalisation, and of MLP or ISTA", ("table8",), CLEAN),
    SequenceTable(
        "Table 3: Long-Range Arena",
        ("table3",),
        {"lra": ("top1", "seconds_per_1k_steps", "memory_gb")},
        claims={"tssa": ("top1",)},
        settings={
            "ListOps": {"length": "up to 2,000 tokens", "size": "6 × 512", "epochs": "90,000 steps"},
            "Text": {"length": "up to 4,000 bytes", "size": "4 × 256", "epochs": "25,000 steps"},
            "Retrieval": {"length": "up to 4,000 bytes", "size": "6 × 128", "epochs": "91,960 steps"},
            "Image": {"length": "32 × 32 pixels", "size": "8 × 64", "epochs": "180,000 steps"},
            "Pathfinder": {"length": "32 × 32 pixels", "size": "2 × 64", "epochs": "200,000 steps"},
        },
    ),
    SequenceTable(
        "Table 4: loss on the test sets of corpora",
        ("table4",),
        {"zero_shot": ("loss",)},
        settings={
            "": {"name": "openwebtext", "context": "context 1,024", "size": "12 × 768", "epochs": "600,000 steps"}
        },
    ),
]
