"""``kattn eval``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import Annotated

import typer

from kattn_cli.commands.options import (
    Checkpoint,
    CheckpointOption,
    DeviceOption,
    QuietOption,
    ResultsOption,
    RunAsOption,
    Runs,
    chosen_runs,
    start,
)

EXAMPLE = "Example:  kattn eval quickstart/rpc --corruptions --reference quickstart/softmax"

GIVEN = "COMMANDLINE"
"""The source of an option that stands on the command line."""


class Split(str, Enum):
    """A split of a data set."""

    test = "test"
    validation = "validation"
    train = "train"


class Parameters(str, Enum):
    """Whose parameters of the corruptions."""

    imagenet_c = "imagenet-c"
    cifar_c = "cifar-c"


def evaluate(
    context: typer.Context,
    runs: Runs = None,
    split: Annotated[Split, typer.Option(help="Which part of the data.")] = Split.test,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many images or tokens.")] = None,
    corruptions: Annotated[
        bool, typer.Option("--corruptions", help="Also under all 15 types of ImageNet-C at all 5 severities.")
    ] = False,
    corruption: Annotated[
        list[str] | None, typer.Option(metavar="NAME", help="Under this type, such as fog; repeat for several.")
    ] = None,
    severity: Annotated[
        list[int] | None, typer.Option(metavar="1…5", help="At this severity; repeat. [default: all five]")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of whatever the corruptions draw, and of episodes.")] = 0,
    parameters: Annotated[
        Parameters | None,
        typer.Option(help="ImageNet-C's parameters or CIFAR-10-C's. [default: by the size of the images]"),
    ] = None,
    frost: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="Photographs of frost. [default: frost that is drawn]")
    ] = None,
    reference: Annotated[
        str | None,
        typer.Option(
            metavar="RUN", help="What mCE divides by: a run, or alexnet. [default: alexnet for ImageNet, else none]"
        ),
    ] = None,
    ood: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=PATH",
            help="Also on a folder of <class>/* or <corruption>/<severity>/<class>/*, among its classes only; repeat. "
            "AUPR: its images against the clean ones by minus the highest softmax probability; without skill it is "
            "their share.",
        ),
    ] = None,
    window: Annotated[
        int | None, typer.Option(min=1, help="Tokens that a language model sees at once. [default: its context]")
    ] = None,
    stride: Annotated[
        int | None, typer.Option(min=1, help="By how many tokens that window moves on. [default: 1, as the RPC paper]")
    ] = None,
    corpus: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="Also on this text, by the run's own vocabulary; repeat for several."),
    ] = None,
    target_return: Annotated[
        list[float] | None,
        typer.Option(
            metavar="R",
            help="Of a run on trajectories: act in its environment with this return to go; repeat for several. "
            "[default: those of Decision Transformer, else the best of the data]",
        ),
    ] = None,
    episodes: Annotated[int | None, typer.Option(min=1, help="Episodes for each target return. [default: 10]")] = None,
    workers: Annotated[
        bool, typer.Option("--workers", help="Each environment in a process of its own, for slow ones.")
    ] = False,
    sensitivity: Annotated[
        bool,
        typer.Option(
            "--sensitivity",
            help="Also margins, the scale of logits and gradients by the image: whether robustness may be masking.",
        ),
    ] = False,
    again: Annotated[bool, typer.Option("--again", help="Measure anew what was measured before.")] = False,
    save_images: Annotated[
        bool,
        typer.Option(
            "--save-images",
            help="Draw what the corruptions look like; alone, evaluate nothing. Of segmentation: images, labels and "
            "what the model tells.",
        ),
    ] = False,
    run_as: RunAsOption = None,
    checkpoint: CheckpointOption = Checkpoint.best,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
) -> None:
    """Accuracy, loss and calibration on the test set, clean, corrupted, and on other folders; perplexity; mean IoU.

    Runs on trajectories act in their environment, for whole episodes.

    The mean error is over types and severities; mCE divides each type's error by a reference's. What was interrupted
    goes on where it stopped when the same command is given again.
    """
    from kattn_cli.experiment.run import Opener
    from kattn_cli.experiment.run_as import other_attention
    from kattn_cli.tasks import evaluate as evaluate_by_task
    from kattn_cli.tasks.task import Asked

    asked = Asked(
        opener=Opener(start(quiet, device), checkpoint.value, other_attention("--run-as", run_as)),
        results=results,
        again=again,
        split=split.value,
        limit=limit,
        corruptions=corruptions,
        corruption=corruption or [],
        severity=severity or [],
        seed=seed,
        parameters=parameters.value if parameters else None,
        frost=frost,
        reference=reference,
        ood=ood or [],
        save_images=save_images,
        sensitivity=sensitivity,
        window=window,
        stride=stride or 1,
        corpus=corpus or [],
        target_return=target_return or [],
        episodes=episodes or 10,
        workers=workers,
    )
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = [name for name, source in sources.items() if source and source.name == GIVEN]
    evaluate_by_task(chosen_runs(results, runs, quiet), asked, given)
