# Every target sets itself up in a local .venv; nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch pinned in the constraints file keeps pip from fetching gigabytes of CUDA packages.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: demo test lint types unit slow bench format clean

$(VENV)/.ready: pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[dev]'
	touch $@

demo: $(VENV)/.ready
	$(BIN)/ciplearn demo --out demo-output

test: lint types unit

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

unit: $(VENV)/.ready
	$(BIN)/pytest -n 2 -q

slow: $(VENV)/.ready
	$(BIN)/pytest -m slow

bench: $(VENV)/.ready
	$(BIN)/ciplearn bench

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:
	rm -rf $(VENV) build dist demo-output
