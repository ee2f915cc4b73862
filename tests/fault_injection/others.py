"""Several commands at once on one run or recipe: every row is there, every run has a folder of its own."""

from __future__ import annotations

import shutil
from collections.abc import Iterator

from tiny_tasks import write_tiny

from fault_injection.case import Case, chance, judged
from fault_injection.commands import Kattn
from fault_injection.damage import RUN, template
from fault_injection.runs import rows, run_folders

AT_ONCE = 8


def measurements(kattn: Kattn, rounds: int) -> Iterator[Case]:
    """Attack one run with eight budgets at once; each row that is not there afterwards is a case that is lost."""
    folder = kattn.folder / "measured"
    folder.mkdir()
    recipe = write_tiny("images", folder)
    kattn.must("train", recipe, "--results", folder, "-q")
    for number in range(rounds):
        budgets = [f"{AT_ONCE * number + one + 1}/2000" for one in range(AT_ONCE)]
        words = ("attack", "tiny", "--fgsm", "--no-checks", "--results", folder, "-q", "--epsilon")
        running = [kattn.start(*words, budget) for budget in budgets]
        said = [one.said() for one in running]
        there = {round(float(row["epsilon"]) * 2000) for row in rows(folder / "tiny/0/attacks.csv") if row["epsilon"]}
        for one, budget in zip(said, budgets, strict=True):
            lost = int(budget.partition("/")[0]) not in there
            yield judged("concurrent measurements", f"ε = {budget}", one, "lost" if lost else "")


def trainings(kattn: Kattn, rounds: int) -> Iterator[Case]:
    """Train one recipe eight times at once, while runs are listed: eight runs, and each listing whole."""
    for number in range(rounds):
        folder = kattn.folder / f"trained-{number}"
        folder.mkdir()
        recipe = write_tiny("images", folder)
        running = [kattn.start("train", recipe, "--results", folder / "results", "-q") for _ in range(AT_ONCE)]
        while not all(one.ended(0.01) for one in running):
            said = kattn.run("list", "runs", "--results", folder / "results")
            leftover = "manifest.json" in said.out + said.err
            yield judged("listings meanwhile", "of eight trainings", said, "leftover" if leftover else "")
        found = run_folders(folder / "results")
        for one in running:
            yield judged("concurrent trainings", "of one recipe", one.said(), "" if len(found) == AT_ONCE else "lost")


def readers(kattn: Kattn, rounds: int, seed: int) -> Iterator[Case]:
    """Read a run while its files are cut and written again in place, as an editor or a copy over a network does."""
    whole = template(kattn)
    words = (("list", "runs"), ("plot", "tiny", "--format", "svg"), ("report", "--no-figures"), ("eval", "tiny", "-q"))
    for number in range(rounds):
        draw, results = chance(seed, "readers", number), kattn.folder / f"read-{number}"
        shutil.copytree(whole, results)
        names = ("metrics.csv", "eval.csv", "manifest.json", "recipe.yaml", "attacks.csv")
        texts = {name: (results / RUN / name).read_bytes() for name in names}
        reading = kattn.start(*draw.choice(words), "--results", results)
        while not reading.ended(0.002):
            name = draw.choice(names)
            (results / RUN / name).write_bytes(texts[name][: draw.randrange(len(texts[name]))])
            (results / RUN / name).write_bytes(texts[name])
        yield judged("files that change meanwhile", "read", reading.said())
        shutil.rmtree(results)


def resumptions(kattn: Kattn, rounds: int) -> Iterator[Case]:
    """Go on with one run eight times at once: one trains, the others are told who does, or that it is finished."""
    for number in range(rounds):
        folder = kattn.folder / f"resumed-{number}"
        folder.mkdir()
        recipe = write_tiny("images", folder)
        kattn.must("train", recipe, "--results", folder / "results", "-q")
        words = ("train", recipe, "--resume", "train.epochs=5", "--results", folder / "results", "-q")
        said = [one.said() for one in [kattn.start(*words) for _ in range(AT_ONCE)]]
        metrics = rows(folder / "results/tiny/0/metrics.csv")
        epochs = [row["epoch"] for row in metrics if row["split"] == "train"]
        whole = epochs == [str(epoch) for epoch in range(1, 6)] and len(run_folders(folder / "results")) == 1
        for one in said:
            yield judged("concurrent resumptions", "of one run", one, "" if whole else "lost")
