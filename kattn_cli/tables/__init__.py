"""What the tables of runs say: frames, measures, statistics, comparisons, text. Never imports torch."""
