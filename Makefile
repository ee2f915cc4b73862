# make demo: environment, five mechanisms trained, attacked and analysed on real images, table and figures
# make test: lint, types, tests
# An exact set-up:  make demo CONSTRAINTS=constraints.txt

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?=
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
KATTN = $(BIN)/kattn

.PHONY: demo test lint types check install constraints clean

demo: $(VENV)/.installed
	$(KATTN) train quickstart --seed 0 --seed 1 --seed 2 --jobs 2 --results results/demo
	$(KATTN) attack quickstart --pgd --epsilon 4/255 --epsilon 16/255 --results results/demo
	$(KATTN) spectrum quickstart --results results/demo
	$(KATTN) plot quickstart --output results/demo/figures --results results/demo
	@echo "Next: kattn attack --help, kattn complexity, or a recipe of your own (README)."

test: $(VENV)/.installed-test lint types check

lint:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types:
	$(BIN)/mypy

check:
	$(BIN)/pytest -n auto

install: $(VENV)/.installed

$(BIN)/python:
	@echo "Making the environment in $(VENV) (minutes: PyTorch is large)"
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(PIP) --editable .
	@touch $@

$(VENV)/.installed-test: pyproject.toml | $(BIN)/python
	$(PIP) --editable ".[test]"
	@touch $@ $(VENV)/.installed

constraints: $(VENV)/.installed-test
	@echo "# An exact set-up that passed the tests: $$($(BIN)/python -V), $$(uname -sm). Made by: make constraints" > constraints.txt
	$(BIN)/python -m pip freeze --exclude-editable >> constraints.txt

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache
