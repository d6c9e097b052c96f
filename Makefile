# One command to learn: `make check`. Everything below sets up .venv from a bare Python 3.11+ when it has to.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
# Tests and clients are processes that wait for each other most of the time, so more workers than cores is fine.
WORKERS ?= auto
# The tests that reach every branch of journal/, partition/ and replica/; pyproject.toml says what is measured.
COVERING := tests/stories $(addprefix tests/unit/,journal partition replica broker api)
REST     := tests/tidy $(filter-out $(COVERING) %__pycache__,$(wildcard tests/unit/*))

# The tests of real clients that can be pointed at a cluster.
THREE := clients admin groups streams kcat churn kill_nine

.DEFAULT_GOAL := help
.PHONY: help setup demo test three quick check coverage format docs wheel bench lock clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

setup: $(READY) ## make .venv with the package and the locked tools in it

$(READY): pyproject.toml requirements-dev.txt hatch_build.py $(wildcard src/*/*.pyx src/*/*/*.pyx)
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Zurau needs Python 3.11 or newer; say which one with: make PYTHON=python3.12"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@$(BIN)/zurau version
	@touch $@

demo: $(READY) ## the logs pipeline live: three brokers, Spark, result topics and lake; a leader is killed half-way
	@$(BIN)/python demo/demo.py

test: $(READY) ## every test; what cannot run here is skipped and says why
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadgroup

three: $(READY) ## the compatibility suite once more, against three brokers with three replicas of everything
	ZURAU_AGAINST=cluster $(BIN)/python -m pytest -n 2 --dist loadgroup $(addprefix tests/compatibility/test_,$(addsuffix .py,$(THREE)))

quick: $(READY) ## the inner loop, under a minute: unit tests, stories and house rules
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup tests/unit tests/stories tests/tidy

check: $(READY) ## what a change must pass: style, types, import directions, house rules, unit tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup $(REST)
	$(MAKE) coverage

coverage: $(READY) ## whether tests reach every branch of the replicas, the partitions and the journal
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadgroup --cov --cov-report=term $(COVERING)

format: $(READY) ## put the code into house style
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

docs: $(READY) ## write docs/generated/ anew from the tables in the code
	$(BIN)/python tools/generate_docs.py

wheel: $(READY) ## build dist/*.whl, which pip installs anywhere with this Python and system
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation -w dist .
	@ls dist/*.whl

bench: $(READY) ## measure against peers on this machine, in a quick form
	$(BIN)/python bench/run.py --quick

lock: $(READY) ## pin the development environment anew from requirements-dev.in
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --extra fast --extra spark --extra avro --extra delta --extra iceberg --extra postgres --annotation-style line \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" \
		pyproject.toml requirements-dev.in -o requirements-dev.txt

clean: ## remove what the commands above made, .venv included
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage dist build
	rm -f src/*/*.so src/*/*/*.so src/*/*.pyd src/*/*/*.pyd
	find src tests bench tools demo -name __pycache__ -type d -prune -exec rm -rf {} + 2>/dev/null || true
