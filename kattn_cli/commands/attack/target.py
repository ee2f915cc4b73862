"""A run under attack: its model, its images, and the circumstances that all attacks on it share."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from kattn_cli.attacks.convention import Convention
from kattn_cli.commands.attack.images import FOLDER, AttackedImages
from kattn_cli.commands.attack.plan import Planned
from kattn_cli.data import Split
from kattn_cli.device import device_name
from kattn_cli.errors import RunError
from kattn_cli.experiment.loading import OpenImageRun, as_image_run, open_run
from kattn_cli.runs.provenance import provenance
from kattn_cli.runs.run import Run
from kattn_cli.training.checkpoint import weights_path
from kattn_cli.training.evaluate import topk_correct
from kattn_cli.training.fingerprint import fingerprint

BATCH = 256


@dataclass(frozen=True)
class Protocol:
    """What all attacks on all runs share; ``limit``: only the first so many test images; ``again``: keep nothing."""

    device: torch.device
    seed: int = 0
    limit: int | None = None
    checkpoint: str = "best"
    convention: Convention = "paper"
    batch_size: int = BATCH
    again: bool = False


class Target:
    """A run under attack: its model, its images, and which of them it classifies rightly."""

    def __init__(self, run: Run, protocol: Protocol) -> None:
        self.record = provenance(device_name(protocol.device))
        opened = open_run(run, protocol.device, protocol.checkpoint)
        self.opened: OpenImageRun = as_image_run(opened, "an attack on pixels")
        self.protocol = protocol
        self.model = self.opened.model.requires_grad_(False)
        self.split: Split = self.opened.data.splits["test"].first(protocol.limit).to(protocol.device)
        self.clean = self._clean()
        self.weights = fingerprint(weights_path(run.folder, self.opened.checkpoint))

    @property
    def run(self) -> Run:
        return self.opened.run

    @property
    def images(self) -> int:
        """How many there are that can be read."""
        return len(self.clean)

    @torch.no_grad()
    def _clean(self) -> Tensor:
        """Whether the model is right on each image, ``(n,)`` bool.

        Raises:
            RunError: if the model answers otherwise when asked again, since no attack can be measured on it.
        """
        right = []
        for number, (images, labels) in enumerate(self.split.batches(self.protocol.batch_size)):
            logits = self.model(images)
            if number == 0 and not torch.allclose(logits, self.model(images), rtol=1e-3, atol=1e-4):
                raise RunError(f"{self.run.folder}: its model answers differently when asked twice; attacks need one")
            right.append(topk_correct(logits, labels, 1).cpu())
        return torch.cat(right)

    def record_of(self, planned: Planned) -> AttackedImages:
        """What this measurement has done to each image so far, on these weights and with this code."""
        shared = {
            "weights": self.weights,
            "commit": self.record["commit"],
            "seed": self.protocol.seed,
            "images": self.images,
            "batch_size": self.protocol.batch_size,
            "convention": self.protocol.convention,
        }
        return AttackedImages(self.run.folder / FOLDER / f"{planned.stem(shared)}.csv")
