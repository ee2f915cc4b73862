"""What is printed of language models: a line for each text, and several runs side by side."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from kattn_cli.console import console, print_wide
from kattn_cli.errors import stoppable
from kattn_cli.runs.run import Run
from kattn_cli.statistics.intervals import mean_interval
from kattn_cli.tables.text import mean_and_half
from kattn_cli.tasks.task import Asked
from kattn_cli.tasks.text.perplexity import Measured, Text, measure_perplexity

PREDICTED_ELSEWHERE = "more than one token in twenty is unknown to the vocabulary, which makes a text seem easier"
MUCH_UNKNOWN = 0.05


def measure_and_print(runs: Sequence[Run], texts: Sequence[Text], asked: Asked) -> None:
    """Measure each run on each text, and print what came out; Ctrl-C says how to go on."""
    with stoppable("what was measured so far is in each run's perplexity.csv; the same command goes on from there"):
        print_perplexity(measure_perplexity(runs, texts, asked))


def print_perplexity(measured: Sequence[Measured]) -> None:
    """Print a line for each, and, of several runs or texts, their perplexities in one table."""
    for one in measured:
        window = f"window {one.row['window']}, stride {one.row['stride']}, {int(one.number('tokens')):,} tokens"
        console.print(
            f"{one.run.folder}  {one.text.name()}  perplexity {one.number('perplexity'):.3f}  "
            f"loss {one.number('loss'):.4f}  {one.number('bits_per_byte'):.3f} bits a byte  ({window})"
        )
        if one.number("unknown") > MUCH_UNKNOWN:
            console.print(f"  {100 * one.number('unknown'):.0f} % unknown tokens: {PREDICTED_ELSEWHERE}")
    if len({one.run.folder for one in measured}) > 1:
        _print_table(measured)


def _print_table(measured: Sequence[Measured]) -> None:
    rows = [
        {"label": one.run.label, "text": one.text.name(), "perplexity": one.number("perplexity"), "seed": one.run.seed}
        for one in measured
    ]
    table = pd.DataFrame(rows).drop_duplicates(["label", "text", "seed"], keep="last")
    texts = list(dict.fromkeys(table["text"]))
    console.print("\nPerplexity, mean ± half of the 95 % interval over seeds\n")
    lines = []
    for label, part in table.groupby("label", sort=False):
        by_text = {text: group["perplexity"].tolist() for text, group in part.groupby("text")}
        cells = [_cell(by_text.get(text, [])) for text in texts]
        lines.append([str(label), *cells, str(part["seed"].nunique())])
    print_wide(["run", *texts, "seeds"], lines)
    console.print()


def _cell(values: list[float]) -> str:
    if not values:
        return ""
    return mean_and_half(*mean_interval(values), 2)
