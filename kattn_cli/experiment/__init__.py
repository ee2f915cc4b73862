"""Where a recipe and a task become data, a model and a run."""
