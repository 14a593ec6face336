# verify, test, bench, lint, slow: each sets up its own virtual environment once, with Python >= 3.11 and PyPI alone.
SHELL := /bin/bash
VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
# Tests run side by side, one process a core, each with serial arithmetic.
TESTS := OMP_NUM_THREADS=1 MKL_NUM_THREADS=1 $(PY) -m pytest
OUT ?= saddlecheck-report

.PHONY: verify test slow bench lint clean

verify: $(STAMP)  ## the main job: theory, chains, budget, verdict and report on real data
	$(VENV)/bin/saddlecheck verify --out $(OUT)

test: $(STAMP)  ## every test that is not slow
	$(TESTS) -n 2 --dist worksteal

slow: $(STAMP)  ## the longer statistical runs
	$(TESTS) -m slow

bench: $(STAMP)  ## ratios against peers, printed
	@$(PY) -m pip show -q blackjax 2>/dev/null || $(PY) -m pip install -q -c constraints.txt "blackjax>=1.7,<1.8"
	$(PY) -m pip show -q deepbays 2>/dev/null || $(PY) -m pip install -q --no-deps deepbays==0.1.11
	for script in tests/benchmarks/bench_*.py; do echo "== $$script"; $(PY) $$script || exit 1; done

lint: $(STAMP)  ## style, format and types
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/mypy data theory sampling compare

# torch first and alone: a bare requirement of another package would pull a CUDA build of several GB.
$(STAMP): pyproject.toml constraints.txt
	@python=""; for name in python3.13 python3.12 python3.11 python3 python; do \
	  if command -v $$name >/dev/null && $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then python=$$name; break; fi; \
	done; \
	if [ "$$(python3 -c 'import sys; print(sys.version_info[:2] == (3, 11))' 2>/dev/null)" = True ]; then python=python3; fi; \
	if [ -z "$$python" ]; then echo "error: saddlecheck needs Python 3.11 or newer; install it and run make again" >&2; exit 2; fi; \
	[ -x $(PY) ] || $$python -m venv $(VENV)
	$(PY) -m pip install -q --upgrade pip
	$(PY) -m pip install -q "$$(grep '^torch==' constraints.txt)"
	$(PY) -m pip install -q -c constraints.txt -e ".[test,lint]"
	@touch $@

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist
