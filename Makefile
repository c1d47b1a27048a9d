# Every target sets itself up in a local .venv; nothing but Python 3.11+ and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# torch pinned in the constraints file keeps pip from fetching gigabytes of CUDA packages.
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

# Small matrices on several threads of a busy machine are slower than on one; the tests keep the cores busy themselves.
export OMP_NUM_THREADS ?= 1
export OPENBLAS_NUM_THREADS ?= 1
export MKL_NUM_THREADS ?= 1

# Where nothing compiled is kept, every process compiles the library again, and pytest all tests: a third of the time.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help demo workbench test lint types unit docs docs-quick slow bench versions wheel format clean

help:  ## list the targets
	@sed -n 's/^\([a-z-]*\):.*## /  make \1\t/p' Makefile | expand -t 16

$(VENV)/.ready: pyproject.toml constraints.txt
	@echo "Setting up $(VENV): torch and the tools take a minute or two."
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(INSTALL) --editable '.[dev]'
	touch $@

demo: $(VENV)/.ready  ## the idea at work, with a report
	$(BIN)/ciplearn demo --out demo-output

workbench: $(VENV)/.ready  ## the page that draws, judges, trains and walks
	$(BIN)/python workbench/build.py
	$(BIN)/ciplearn workbench --demo

# mypy takes one core for half a minute, while the tests can do with the other.
test: lint  ## what continuous integration runs
	$(MAKE) --jobs 2 types unit

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(VENV)/.ready
	$(BIN)/mypy

unit: $(VENV)/.ready
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder -q

# Pages of names that are gone are no pages. Warnings are errors: a broken link or a name that is not documented stops the build.
SITE := $(BIN)/sphinx-build --builder html --jobs 2 --quiet --fail-on-warning --keep-going -d docs/_build/doctrees

docs: $(VENV)/.ready  ## the site, into docs/_build/html
	rm -rf docs/generated
	$(SITE) docs docs/_build/html

docs-quick: $(VENV)/.ready  ## the site without running its gallery
	rm -rf docs/generated
	$(SITE) --define plot_gallery=0 docs docs/_build/quick

slow: $(VENV)/.ready  ## tests that take long: whole pages, studies, many repetitions
	$(BIN)/pytest -m slow

bench: $(VENV)/.ready  ## what a penalty costs, as ratios
	$(BIN)/ciplearn bench

# torch is pinned in both: other builds of it bring gigabytes of CUDA packages.
versions:  ## quick tests with the lowest versions that are declared, and with the newest
	mkdir -p build
	$(PYTHON) tests/lowest_versions.py > build/lowest.txt
	grep '^torch==' constraints.txt > build/newest.txt
	cat build/newest.txt >> build/lowest.txt
	set -e; for end in lowest newest; do \
	  $(PYTHON) -m venv --clear build/$$end; \
	  build/$$end/bin/python -m pip install --quiet --constraint build/$$end.txt '.[parquet,yaml]' pytest hypothesis; \
	  build/$$end/bin/python -m pytest -q -W default tests/_core tests/causal tests/kernels tests/penalties tests/cli; \
	done

wheel: $(VENV)/.ready  ## build the wheel, install it into an empty environment, and use it from outside the checkout
	$(BIN)/python workbench/build.py
	rm -rf dist build/wheel build/outside
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .
	$(PYTHON) -m venv build/wheel
	@echo "Installing the wheel into an empty environment: torch takes a minute or two."
	build/wheel/bin/python -m pip install --quiet --constraint constraints.txt "$$(ls dist/ciplearn-*.whl)[workbench]"
	mkdir -p build/outside
	cd build/outside && ../wheel/bin/python -c "from ciplearn import datasets as d; \
	  d.applicants().sample(2000, random_state=0).to_csv('people.csv', index=False); \
	  open('graph.txt', 'w').write(d.applicants().graph.to_dagitty())"
	cd build/outside && ../wheel/bin/ciplearn fit people.csv --graph graph.txt --outcome income --protected sex --learner linear --out model
	cd build/outside && ../wheel/bin/ciplearn audit model people.csv --doubt 0 --no-gate --out report.html
	cd build/outside && ../wheel/bin/python -c "import re, subprocess, urllib.request as web; \
	  served = subprocess.Popen(['../wheel/bin/ciplearn', 'workbench', '--demo', '--no-browser', '--folder', 'work'], \
	    stdout=subprocess.PIPE, text=True); \
	  page = web.urlopen(re.search(r'http\S+', served.stdout.readline())[0]).read(); \
	  served.terminate(); assert b'ciplearn workbench' in page, page; print('The workbench serves its page.')"

format: $(VENV)/.ready  ## let ruff fix what it can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

clean:  ## remove all that was made here
	rm -rf $(VENV) build dist demo-output docs/_build docs/auto_gallery docs/generated workbench/node_modules workbench/.node src/ciplearn/workbench/page
