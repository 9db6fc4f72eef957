# make tune   the main job on a small data set, in a fresh environment
# make test   the tests; HYPERJAX_DATA=folder adds those that need the data sets
# make docs   the documentation, into build/docs, warnings as errors
# make bench  speed against LIBSVM, LIBLINEAR, grid search, Optuna and jaxopt, under 40 minutes; bench-quick: a part of
#             it, under 4; both need HYPERJAX_DATA

PYTHON ?= python3
PYTEST_FLAGS ?= -q
VENV := .venv
BIN := $(VENV)/bin
PINS := .ci/constraints.txt

ifneq ($(HYPERJAX_DATA),)
override HYPERJAX_DATA := $(abspath $(HYPERJAX_DATA))
export HYPERJAX_DATA
endif

# Through the environment, so that the build back end is pinned as well.
INSTALL = PIP_CONSTRAINT="$(CURDIR)/$(PINS)" PIP_DISABLE_PIP_VERSION_CHECK=1 $(BIN)/python -m pip install --quiet

.PHONY: tune test lint types docs bench bench-quick clean
.NOTPARALLEL:

tune: $(VENV)/tune.stamp
	$(BIN)/hyperjax tune breast_cancer --kernel ard --stages isotropic,full --test-fraction 0.25

test: $(VENV)/dev.stamp
	$(BIN)/python -m pytest $(PYTEST_FLAGS)

lint: $(VENV)/dev.stamp
	$(BIN)/ruff check .

types: $(VENV)/dev.stamp
	$(BIN)/pyright --pythonpath $(BIN)/python

# The theme's advertisement of a successor is not about these pages.
docs: $(VENV)/docs.stamp
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "build/docs/index.html"

bench: $(VENV)/bench.stamp
	$(BIN)/python -m experiments.speed.run
	$(BIN)/python -m experiments.speed.plot
	$(BIN)/python -m experiments.speed.report

bench-quick: $(VENV)/bench.stamp
	$(BIN)/python -m experiments.speed.run --quick --output build/bench/quick.json
	$(BIN)/python -m experiments.speed.plot build/bench/quick.json

clean:
	rm -rf $(VENV) build dist .pytest_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The sources are installed in place: only a change of the requirements installs again.
$(VENV)/tune.stamp: pyproject.toml $(PINS) | $(VENV)/made.stamp
	@echo "installing hyperjax and scikit-learn into $(VENV) (a minute or two)"
	$(INSTALL) --editable ".[sklearn]"
	@touch $@

$(VENV)/dev.stamp: pyproject.toml $(PINS) | $(VENV)/made.stamp
	@echo "installing hyperjax and its development tools into $(VENV) (a minute or two)"
	$(INSTALL) --editable ".[dev]"
	@touch $@ $(VENV)/tune.stamp

$(VENV)/docs.stamp: pyproject.toml $(PINS) | $(VENV)/made.stamp
	@echo "installing hyperjax and mkdocs into $(VENV) (a minute or two)"
	$(INSTALL) --editable ".[docs]"
	@touch $@

$(VENV)/bench.stamp: pyproject.toml $(PINS) | $(VENV)/made.stamp
	@echo "installing hyperjax and its peers into $(VENV) (a minute or two)"
	$(INSTALL) --editable ".[dev,bench]"
	@mkdir -p build
	@touch $@ $(VENV)/dev.stamp $(VENV)/tune.stamp

$(VENV)/made.stamp:
	$(PYTHON) -m venv $(VENV)
	@touch $@
