"""``kattn eval``."""

from __future__ import annotations

from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kattn_cli.cli_options import (
    Checkpoint,
    CheckpointOption,
    DeviceOption,
    QuietOption,
    ResultsOption,
    Runs,
    chosen_runs,
    figures_folder,
    start,
)
from kattn_cli.errors import KattnError, stoppable
from kattn_cli.results import Run

if TYPE_CHECKING:
    import torch

MASKS = "images with masks"
"""What the manifest of a run says that gives every pixel a class."""

EXAMPLE = "Example:  kattn eval quickstart/rpc --corruptions --reference quickstart/softmax"


class Parameters(str, Enum):
    """Whose parameters of the corruptions."""

    imagenet_c = "imagenet-c"
    cifar_c = "cifar-c"


def evaluate(
    runs: Runs = None,
    split: Annotated[str, typer.Option(help="test, validation or train.")] = "test",
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
    again: Annotated[bool, typer.Option("--again", help="Measure anew what was measured before.")] = False,
    save_images: Annotated[
        bool,
        typer.Option(
            "--save-images",
            help="Draw what the corruptions look like; alone, evaluate nothing. Of segmentation: images, labels and "
            "what the model tells.",
        ),
    ] = False,
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
    if split not in ("test", "validation", "train"):
        raise KattnError(f"--split {split}: expected test, validation or train")
    corrupted = bool(corruptions or corruption or severity)
    if split != "test" and (corrupted or ood):
        raise KattnError(f"--split {split}: corruptions and other folders go with the test set; leave it out")
    if limit and ood:
        raise KattnError("--limit: other folders are evaluated whole; leave it or --ood out")
    if reference and not (corrupted or ood):
        raise KattnError("--reference: is for errors under corruption; add --corruptions")
    chosen = chosen_runs(results, runs, quiet)
    where = start(quiet, device)
    actors = [run for run in chosen if run.manifest.get("reads") == "trajectories"]
    if actors:
        if corrupted or ood or save_images or window or stride or corpus or limit or split != "test":
            raise KattnError(
                f"{actors[0].folder}: reads trajectories; it takes --target-return, --episodes, --seed, --workers, "
                "--again and --checkpoint"
            )
        _roll_out(actors, where, checkpoint.value, target_return or [], episodes or 10, seed, workers, again)
    elif target_return or episodes or workers:
        raise KattnError(
            "--target-return, --episodes and --workers are for runs on trajectories, and none of the runs is one"
        )
    chosen = [run for run in chosen if run not in actors]
    texts = [run for run in chosen if run.reads_text]
    others = [run for run in chosen if not run.reads_text]
    if texts:
        if corrupted or ood or save_images:
            raise KattnError(f"{texts[0].folder}: reads text; corruptions and --ood are for runs on images")
        _evaluate_texts(texts, where, checkpoint.value, split, limit, window, stride or 1, corpus or [], again)
    elif window or stride or corpus:
        raise KattnError("--window, --stride and --corpus are for language models, and none of the runs is one")
    masks = [run for run in others if run.manifest.get("reads") == MASKS]
    others = [run for run in others if run not in masks]
    if masks and (ood or reference):
        raise KattnError(f"{masks[0].folder}: gives every pixel a class; --ood and --reference are for runs on images")
    if not (others or masks):
        return
    chosen = others
    from kattn_cli.commands.corruptions import Corruptions, corruption_names, frost_textures, severities
    from kattn_cli.commands.eval import Settings
    from kattn_cli.commands.eval_report import evaluate_and_report
    from kattn_cli.commands.out_of_distribution import other_folders
    from kattn_cli.commands.save_images import save_sheets

    anew = [run.folder for run in [*chosen, *masks]] if again else []
    making = Corruptions(
        names=corruption_names(corruption or []),
        severities=severities(severity or []),
        seed=seed,
        parameters=parameters.value if parameters else None,
        textures=frost_textures(frost),
        again=anew,
    )
    folders = other_folders(ood or [], anew)
    settings = Settings(where, checkpoint.value, split, limit)  # type: ignore[arg-type]
    if masks:
        from kattn_cli.commands.segmentation_report import evaluate_and_print

        evaluate_and_print(masks, settings, making if corrupted else None, save_images)
    if not chosen:
        return
    if save_images:
        save_sheets(chosen, making)
        if not (corrupted or folders):
            return
    with stoppable("what was measured so far is in each run's eval.csv; the same command goes on from there"):
        evaluate_and_report(
            chosen,
            settings,
            corruptions=making if corrupted else None,
            folders=folders,
            reference=reference,
            results=results,
            figures=figures_folder(results, chosen),
        )


def _evaluate_texts(
    runs: list[Run],
    device: torch.device,
    checkpoint: str,
    split: str,
    limit: int | None,
    window: int | None,
    stride: int,
    corpora: list[str],
    again: bool,
) -> None:
    from kattn_cli.commands.perplexity import Settings, Text
    from kattn_cli.commands.perplexity_report import measure_and_print

    texts = [Text(split=split)]  # type: ignore[arg-type]
    for given in corpora:
        name, equals, path = given.partition("=")
        if not (name and equals and path):
            raise KattnError(f"--corpus {given}: expected NAME=PATH, such as ptb=data/ptb.test.txt")
        texts.append(Text(corpus=name, path=Path(path).expanduser()))
    settings = Settings(device, checkpoint, window, stride, limit, again)
    measure_and_print(runs, texts, settings)


def _roll_out(
    runs: list[Run],
    device: torch.device,
    checkpoint: str,
    target_returns: list[float],
    episodes: int,
    seed: int,
    workers: bool,
    again: bool,
) -> None:
    from kattn_cli.commands.rollout_report import measure_and_print
    from kattn_cli.commands.rollouts import Settings

    settings = Settings(device, checkpoint, target_returns, episodes, seed, workers=workers, again=again)
    measure_and_print(runs, settings)
