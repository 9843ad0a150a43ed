# `make demo` and `make test` set up everything they need in .venv and then run. Nothing else has to be installed first but
# Python 3.11 to 3.13, bash, and, for the browser test, chromium.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
TORCH := torch==2.13.0
# Tests mostly wait (for kernels, browsers, servers), so there are more workers than two cores; a file stays with one.
WORKERS ?= 3

.PHONY: demo test lint bench clean

demo: ## the whole job with a scripted model: CIFAR-10 when its archive is set or cached, else digits
	@$(PYTHON) harness_nb/demos/pick.py
	@$(MAKE) --no-print-directory $(VENV)/.demo
	@if [ "$$($(PYTHON) harness_nb/demos/pick.py --name)" = cifar10 ]; then $(BIN)/python -c "import torch" 2>/dev/null || $(PIP) $(TORCH); fi
	@$(BIN)/harness-nb demo

test: $(VENV)/.test ## lint, types, the whole suite, and the notebooks of the documentation
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile
	$(BIN)/python -m pytest --nbval -p no:cacheprovider notebooks/00_quickstart.ipynb

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.test ## the tool kernel and the record against their peers, as ratios within one run
	$(BIN)/python benchmarks/kernel_bench.py
	$(BIN)/python benchmarks/record_bench.py
	$(BIN)/python benchmarks/sandbox_bench.py

clean:
	rm -rf $(VENV) build dist

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(PIP) -e ".[demo]"
	@touch $@

$(VENV)/.test: pyproject.toml | $(VENV)/bin/python
	$(PIP) $(TORCH)
	$(PIP) -e ".[demo,test]"
	@touch $@
