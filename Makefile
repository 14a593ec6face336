# verify, test, bench, lint, slow: each sets up its own virtual environment once, with Python >= 3.11 and PyPI alone.
SHELL := /bin/bash
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# Tests run side by side, one process a core, each with serial arithmetic.
TESTS := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 $(PY) -m pytest
OUT ?= saddlecheck-report
# The first of these that runs and is new enough makes the environment; 3.11 is what constraints.txt was tested with.
PYTHONS := python3.11 python3.12 python3.13 python3 python

.PHONY: verify test slow bench lint docs clean

verify: $(STAMP)  ## the main job: theory, chains, budget, verdict and report on real data
	$(VENV)/bin/saddlecheck verify --out $(OUT)

test: $(STAMP)  ## every test that is not slow
	@$(TESTS) -n 2 --dist worksteal

slow: $(STAMP)  ## the longer statistical runs
	@$(TESTS) -m slow

bench: $(VENV)/.bench  ## ratios against peers, printed
	@for script in tests/benchmarks/bench_*.py; do echo "== $$script"; $(PY) $$script || exit 1; done

lint: $(STAMP)  ## style, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy data theory sampling compare

docs: $(STAMP)  ## guide and API reference as HTML in docs/_build; warnings are errors
	$(PY) -m sphinx -q -W --keep-going -b html docs docs/_build

# torch first and alone: a bare requirement of another package would pull a CUDA build of several GB.
$(STAMP): pyproject.toml constraints.txt
	@for name in $(PYTHONS); do \
	  if $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then python=$$name; break; fi; \
	done; \
	if [ -z "$$python" ]; then \
	  echo "error: saddlecheck needs Python 3.11 or newer, and none of $(PYTHONS) is; install one and run make again" >&2; exit 2; \
	fi; \
	if ! [ -x $(PY) ] && ! $$python -m venv $(VENV); then \
	  rm -rf $(VENV); \
	  echo "error: $$python cannot make a virtual environment; install its venv module (Debian: python3-venv) and run make again" >&2; exit 2; \
	fi
	$(PY) -m pip install -q "$$(grep '^torch==' constraints.txt)"
	$(PY) -m pip install -q -c constraints.txt -e ".[test,lint,docs]"
	@touch $@

# The peers of the benchmarks; deepbays without its dependencies, which are ours already.
$(VENV)/.bench: $(STAMP)
	$(PY) -m pip install -q -c constraints.txt -e ".[bench]"
	$(PY) -m pip install -q --no-deps deepbays==0.1.11
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
