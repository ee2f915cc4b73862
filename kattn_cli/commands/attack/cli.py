"""``kattn attack``."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from enum import Enum
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kattn_cli.attacks import ATTACKS, Attack
from kattn_cli.commands.options import (
    Checkpoint,
    CheckpointOption,
    DeviceOption,
    QuietOption,
    ResultsOption,
    RunAsOption,
    Runs,
    chosen_runs,
    fraction,
    start,
)
from kattn_cli.errors import KattnError, stoppable
from kattn_cli.runs.find import figures_folder
from kattn_cli.runs.run import Run

if TYPE_CHECKING:
    import torch

    from kattn_cli.attacks import Norm as NormName
    from kattn_cli.commands.attack.measure import Protocol
    from kattn_cli.commands.attack.plan import Planned

QUICK = ("pgd", "fgsm", "noise")
EXAMPLE = "Example:  kattn attack quickstart/rpc --pgd --fgsm --noise --epsilon 1/255 --epsilon 4/255"


SHARES = (0.05, 0.1)


class TextSplit(str, Enum):
    """A split of a corpus."""

    test = "test"
    validation = "validation"


class Norm(str, Enum):
    """A norm of a perturbation."""

    linf = "linf"
    l2 = "l2"
    l1 = "l1"


class Convention(str, Enum):
    """Whose threat model."""

    paper = "paper"
    reference = "reference"


def budget(text: str) -> float:
    """Read a number above 0, a fraction, or ``inf``."""
    try:
        value = math.inf if text == "inf" else float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        raise typer.BadParameter(f'"{text}" is not a number, a fraction or inf') from None
    if value <= 0:
        raise typer.BadParameter(f"{text} is not above 0")
    return value


def listed(texts: list[str] | None) -> list[str]:
    """Return an option's values, given several times or with commas between them."""
    return [part.strip() for text in texts or [] for part in text.split(",")]


def with_flags(command: Callable[..., None]) -> Callable[..., None]:
    """Give ``command`` a flag for each attack, after its first parameter and in place of its ``**flags``."""
    signature = inspect.signature(command, eval_str=True)
    runs, *others, _ = signature.parameters.values()
    flags = [
        inspect.Parameter(
            name,
            inspect.Parameter.POSITIONAL_OR_KEYWORD,
            default=False,
            annotation=Annotated[bool, typer.Option(f"--{name}", help=_flag_help(card))],
        )
        for name, card in ATTACKS.items()
    ]
    command.__signature__ = signature.replace(parameters=[runs, *flags, *others])  # type: ignore[attr-defined]
    return command


def _flag_help(card: Attack) -> str:
    details = ", ".join(filter(None, (card.access, card.schedule)))
    return f"{card.description[0].upper()}{card.description[1:]} ({details})."


@with_flags
def attack(
    runs: Runs = None,
    everything: Annotated[bool, typer.Option("--all", help="All of them.")] = False,
    word_swap: Annotated[
        bool, typer.Option("--word-swap", help="Of language models: random words of the text become AAA.")
    ] = False,
    share: Annotated[
        list[str] | None,
        typer.Option(help="Shares of words to swap, such as 0.05; repeat. [default: 0.05 and 0.1]"),
    ] = None,
    split: Annotated[
        list[TextSplit] | None, typer.Option(help="Splits whose words are swapped; repeat. [default: test]")
    ] = None,
    window: Annotated[int | None, typer.Option(min=1, help="See kattn eval --help; so --stride.")] = None,
    stride: Annotated[int | None, typer.Option(min=1, help="By how many tokens the window moves on.")] = None,
    epsilon: Annotated[
        list[str] | None,
        typer.Option(
            help="ℓ∞ budgets, as 4/255 or 1/255,2/255 or 0.0157 of the pixel range. [default: the RPC paper's]"
        ),
    ] = None,
    epsilon_l2: Annotated[
        list[str] | None, typer.Option(help="ℓ2 budgets in pixel units, or inf. [default: inf for cw]")
    ] = None,
    epsilon_l1: Annotated[
        list[str] | None, typer.Option(help="ℓ1 budgets in pixel units. [default: 10 for sld]")
    ] = None,
    norm: Annotated[Norm | None, typer.Option(help="Attack in this norm. [default: each attack's own]")] = None,
    steps: Annotated[int | None, typer.Option(min=2, help="Steps of attacks that take several.")] = None,
    step_size: Annotated[
        float | None, typer.Option(min=1e-6, help="As a share of ε; for cw, in pixels. [default: each attack's own]")
    ] = None,
    restarts: Annotated[int, typer.Option(min=1, help="Random starts, the worst of which counts.")] = 1,
    targeted: Annotated[bool, typer.Option("--targeted", help="Towards a random other class.")] = False,
    convention: Annotated[
        Convention,
        typer.Option(help="paper: ε in pixels, which stay in [0, 1]. reference: in normalised units, unclipped."),
    ] = Convention.paper,
    limit: Annotated[int | None, typer.Option(min=1, help="Only the first so many test images.")] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Images at once; after each batch progress is kept.")] = 256,
    seed: Annotated[int, typer.Option(min=0, help="Seed of whatever the attacks draw.")] = 0,
    checks: Annotated[bool, typer.Option(help="Judge whether the numbers can be believed.")] = True,
    again: Annotated[bool, typer.Option("--again", help="Measure anew what was measured before.")] = False,
    run_as: RunAsOption = None,
    gradient_as: Annotated[
        str | None,
        typer.Option(
            metavar="RECIPE",
            help="Make images by the gradient of the weights in this recipe's attention; judge them as the run is.",
        ),
    ] = None,
    checkpoint: CheckpointOption = Checkpoint.best,
    device: DeviceOption = "auto",
    results: ResultsOption = Path("results"),
    quiet: QuietOption = False,
    **flags: bool,
) -> None:
    """Accuracy on the test set under attack; of language models, perplexity.

    If no attack is named: pgd, fgsm and noise, which are quick. Several runs are laid side by side, with paired
    differences from the first. What was interrupted goes on where it stopped when the same command is given again.
    """
    named = [name for name in ATTACKS if flags[name]]
    if everything and named:
        raise KattnError(f"--all and --{named[0]}: --all means every attack; leave one of them out")
    budgets: dict[NormName, list[float]] = {
        "linf": [fraction(text) for text in listed(epsilon)],
        "l2": [budget(text) for text in listed(epsilon_l2)],
        "l1": [budget(text) for text in listed(epsilon_l1)],
    }
    if word_swap and (everything or named):
        raise KattnError(f"--word-swap: attacks text, and --{named[0] if named else 'all'} images; give one of the two")
    if not word_swap and (share or split or window or stride):
        raise KattnError("--share, --split, --window and --stride: go with --word-swap")
    if word_swap and (run_as or gradient_as):
        raise KattnError("--run-as and --gradient-as: go with attacks on images, not with --word-swap")
    chosen = chosen_runs(results, runs, quiet)
    where = start(quiet, device)
    if word_swap:
        shares = [fraction(text) for text in listed(share)] or list(SHARES)
        splits = [one.value for one in split or [TextSplit.test]]
        _swap_words(chosen, where, checkpoint.value, shares, splits, seed, limit, window, stride or 1, again)
        return
    from kattn_cli.commands.attack.measure import Protocol
    from kattn_cli.commands.attack.plan import Asked, plan
    from kattn_cli.experiment.run_as import other_attention
    from kattn_cli.tasks import task_reading

    for run in chosen:
        if option := task_reading(run.reads).attack_option:
            raise KattnError(f"{run.folder}: reads {run.reads}, which {option} attacks; all others attack images")
    asked = Asked(
        attacks=list(ATTACKS) if everything else named or QUICK,
        named=bool(named),
        budgets={key: values for key, values in budgets.items() if values},
        norm=norm.value if norm else None,
        steps=steps,
        relative_step=step_size,
        restarts=restarts,
        targeted=targeted,
        by_gradient=gradient_as is not None,
    )
    protocol = Protocol(
        device=where,
        seed=seed,
        limit=limit,
        checkpoint=checkpoint.value,
        convention=convention.value,
        batch_size=batch_size,
        again=again,
        run_as=other_attention("--run-as", run_as),
        gradient_as=other_attention("--gradient-as", gradient_as),
    )
    with stoppable("what was measured so far is kept; the same command goes on from there"):
        attack_runs(chosen, plan(asked), protocol, figures_folder(results, chosen), checks=checks)


def attack_runs(runs: list[Run], planned: list[Planned], protocol: Protocol, folder: Path, *, checks: bool) -> None:
    """Attack each run; print one table, the differences between runs and the checks; draw the figure in ``folder``.

    What an interrupted command has measured of a run is kept, to the last finished batch. Checks need an attack that
    sees gradients, and are of runs in their own attention, as figure and differences that are kept.

    Raises:
        RecipeError, DataError, CheckpointError, RunError: if a run cannot be opened or attacked.
    """
    from kattn_cli.commands.attack.checks import check_run, print_checks
    from kattn_cli.commands.attack.measure import Target, attack_run
    from kattn_cli.commands.attack.table import print_attacked
    from kattn_cli.console import console, progress_bar
    from kattn_cli.figures.robustness import draw_robustness
    from kattn_cli.tables.frames import attack_frame

    judged = []
    checks = checks and protocol.own and any(ATTACKS[one.attack].white_box for one in planned)
    with progress_bar("images") as bar:
        for run in runs:
            target = Target(run, protocol)
            attack_run(target, planned, bar)
            if checks:
                judged.append(check_run(target))
    print_attacked(runs, folder if protocol.own else None, **protocol.recipes)
    if judged:
        print_checks(runs, judged)
    if protocol.own:
        console.print(draw_robustness(attack_frame(runs), folder))


def _swap_words(
    runs: list[Run],
    device: torch.device,
    checkpoint: str,
    shares: list[float],
    splits: list[str],
    seed: int,
    limit: int | None,
    window: int | None,
    stride: int,
    again: bool,
) -> None:
    from kattn_cli.experiment.run import Opener
    from kattn_cli.tasks.task import Asked
    from kattn_cli.tasks.text.perplexity import Text
    from kattn_cli.tasks.text.report import measure_and_print

    texts = [
        Text(split=split, swap_share=share, swap_seed=seed)  # type: ignore[arg-type]
        for split in splits
        for share in (0.0, *shares)
    ]
    asked = Asked(Opener(device, checkpoint), window=window, stride=stride, limit=limit, again=again)
    measure_and_print(runs, texts, asked)
