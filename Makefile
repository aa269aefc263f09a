# Every target works alone on a fresh clone: Python 3.11 or later and package registries are all it needs.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SETUP  := $(VENV)/.ready

.PHONY: help setup demo test test-torch test-gpu test-metal test-metal-full fuzz check schemas clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\): .*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

setup: $(SETUP)  ## virtual environment with nodeprep, its tests and its linters

# Old pips know no dependency groups, so pip comes first.
$(SETUP): pyproject.toml hatch_build.py nodeprep/__init__.py
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "nodeprep needs Python 3.11 or later; make PYTHON=python3.12 ...")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade 'pip>=25.1'
	$(BIN)/python -m pip install --quiet --editable '.[sim]' --group test --group lint
	touch $@

demo: $(SETUP)   ## the whole path on a simulated rack; writes demo/report.html
	$(BIN)/nodeprep demo -o demo

# A file's tests share what is dear to make (a rack that was certified, a wheel); the folders with long
# tests come first, so that no worker is left with one of them at the end.
TOGETHER = -n 2 --dist loadfile --no-loadscope-reorder

test: $(SETUP)   ## all tests that need no GPU and no torch
	$(BIN)/python -m pytest $(TOGETHER)

test-torch: $(SETUP)  ## the tests that need torch; installs it (large) when it is missing
	$(BIN)/python -c 'import torch' 2>/dev/null || $(BIN)/python -m pip install --quiet torch
	$(BIN)/python -m pytest -m torch

test-gpu: $(SETUP)  ## the tests on a real GPU; NODEPREP_PROBE_PYTHON names a Python with torch
	$(BIN)/python -m pytest -m gpu -rs

# Debian packages that the virtual rack needs and this machine lacks; only root can install them.
METAL_HOST = missing=$$($(BIN)/python -m nodeprep.sim.vm missing) && { [ -z "$$missing" ] || \
	{ apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing; }; }

test-metal: $(SETUP)  ## good arguments, five bad ones and roles on virtual machines; a Debian machine and root
	$(METAL_HOST)
	$(BIN)/python -m pytest -n 2 -m metal

test-metal-full: $(SETUP)  ## all tests on virtual machines, the long ones too
	$(METAL_HOST)
	$(BIN)/python -m pytest -n 2 -m 'metal or metal_full'

RUNS ?= 1000000

fuzz: $(SETUP)   ## RUNS inputs found by coverage against the log readers; see tests/fuzz/README.md
	$(BIN)/python -m pip install --quiet --group fuzz
	mkdir -p build/fuzz
	$(BIN)/python tests/fuzz/fuzz_readers.py -runs=$(RUNS) -artifact_prefix=tests/fuzz/ build/fuzz

check: $(SETUP)  ## formatting, lint, types, import rules, YAML, Ansible, schemas
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/yamllint --strict .
	PATH="$(CURDIR)/$(BIN):$$PATH" $(BIN)/ansible-lint --offline --strict
	$(BIN)/python -m pytest -q tests/contract/test_schemas.py

schemas: $(SETUP)  ## write the JSON Schemas anew
	$(BIN)/python -m nodeprep.model.schemas

clean:           ## everything that was made here
	rm -rf $(VENV) demo dist build .ansible .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
