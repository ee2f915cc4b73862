# make demo: environment, five mechanisms trained, attacked and analysed on real images, table and figures
# make test: lint, types, tests
# make gpu: on a machine with a GPU, in under eight minutes: the tests of its kernels, their benchmark, costs over N
# make report: the page over results/reference
# make reference: everything under results/reference again, from its recipes, into results/remade (hours; goes on where it was)
# make reference-small: in under 20 minutes, what of it needs no data that do not install; then compared with what is committed
# make mutants: what the tests kill of a random sample of mutants of each room, into results/mutants (hours; goes on where it was)
# make simulations: whether the error rates and the power that kattn states are those that it has (half an hour)
# make faults: kills, damaged files, full disks, others at work and power failures, into results/faults (minutes)
# An exact set-up:  make demo CONSTRAINTS=constraints.txt

PYTHON ?= python3
VENV ?= .venv
CONSTRAINTS ?=
BIN = $(VENV)/bin
PIP = $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(CONSTRAINTS),--constraint $(CONSTRAINTS))
KATTN = $(BIN)/kattn

GPU_RESULTS ?= results/gpu
GPU_KATTN ?= $(PYTHON) -m kattn_cli
GPU_OPTIONS = --device cuda --dtype bfloat16 --results $(GPU_RESULTS)
GPU_SIZES = --n 1024 --n 2048 --n 4096 --n 8192 --n 16384 --n 32768 --seconds 0.1 --limit 2

REMADE ?= results/remade
REMAKE = $(KATTN) reproduce --small --jobs 2 --device cpu --results $(REMADE)
TABLES = rpc/table1 rpc/table2 rpc/table3 rpc/table5 rpc/table6 rpc/table9 rpc/table11 primal/table1 primal/table3 primal/table5 primal/table7b tost/table1 tost/table3 tost/table4
OWN = kattn/quickstart kattn/mechanisms kattn/architectures kattn/vision kattn/kernel_pca kattn/complexity kattn/benchmark kattn/audit kattn/image
REPORT = $(KATTN) report results/reference --paper rpc --paper primal --paper tost --title 'Reference results' --output results/reference/report

.PHONY: demo test gpu reference reference-small report lint types check install mutants simulations faults constraints clean

demo: $(VENV)/.installed
	$(KATTN) train quickstart --seed 0 --seed 1 --seed 2 --jobs 2 --results results/demo
	$(KATTN) attack quickstart --pgd --epsilon 4/255 --epsilon 16/255 --results results/demo
	$(KATTN) spectrum quickstart --results results/demo
	$(KATTN) plot quickstart --output results/demo/figures --results results/demo
	@echo "Next: kattn attack --help, kattn complexity, or a recipe of your own (README)."

test: $(VENV)/.installed-test lint types check

gpu:
	-$(PYTHON) -m pytest -m gpu -n auto --maxprocesses 8 tests/kernels
	$(GPU_KATTN) benchmark $(GPU_OPTIONS)
	$(GPU_KATTN) complexity --dim 384 --heads 8 $(GPU_SIZES) $(GPU_OPTIONS)
	$(GPU_KATTN) complexity --dim 4096 --heads 32 --pass forward --attention tssa --attention xca --attention mssa $(GPU_SIZES) $(GPU_OPTIONS)
	$(GPU_KATTN) complexity --dim 768 --heads 12 --causal yes --attention tssa $(GPU_SIZES) $(GPU_OPTIONS)

reference: $(VENV)/.installed-test
	$(REMAKE) $(OWN) $(TABLES)

reference-small: $(VENV)/.installed-test
	$(REMAKE) kattn/quickstart kattn/kernel_pca
	$(REMAKE) kattn/mechanisms kattn/architectures --seed 0
	KATTN_REMADE=$(REMADE) $(BIN)/pytest -m reference -o addopts="-v -s --import-mode=importlib" tests/test_remade.py

report: $(VENV)/.installed
	$(REPORT)

mutants: $(VENV)/.installed-test
	$(PIP) --editable ".[mutation]"
	$(BIN)/python tests/mutation.py results/mutants

simulations: $(VENV)/.installed-test
	$(BIN)/python tests/simulations.py results/reference/statistics/simulations.csv

faults: $(VENV)/.installed-test
	$(BIN)/python tests/faults.py results/faults

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
