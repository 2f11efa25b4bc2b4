# Needs only make and python3 >= 3.11; everything else goes into .venv.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Certificates are those of the system, as for pip: a company's proxy has its own.
UV := UV_SYSTEM_CERTS=1 UV_NATIVE_TLS=1 $(BIN)/uv
TORCH := torch==2.13.0
CPU_WHEELS := https://download.pytorch.org/whl/cpu
# On Linux, PyPI's torch brings several gigabytes of CUDA libraries: take the CPU build, without its dependencies (the
# few it needs are locked). pip, unlike uv, also looks where the user's settings say that wheels lie.
INSTALL_TORCH = python -m pip install --quiet --no-deps --retries 1 --extra-index-url $(CPU_WHEELS) '$(TORCH)' \
	|| echo 'No wheel of $(TORCH) for this Python: the tests that need torch will be skipped.'
# One BLAS thread per test process: pytest-xdist already keeps every core busy.
ONE_THREAD := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 NUMBA_NUM_THREADS=1
PYTEST := $(ONE_THREAD) $(BIN)/python -m pytest

.PHONY: run test test-kernels defaults lint format types readme docs check lock clients wheel test-wheel test-oldest \
	bench-peers bench-many-classes bench-memory bench-softmax-path bench-accuracy bench-profile bench-bound \
	bench-dual bench-stagewise bench-stochastic uncompiled clean

run: $(VENV)/.ready  ## fit and evaluate a model on scikit-learn's digits
	$(BIN)/manyclass fit

test: $(VENV)/.ready  ## every test, in parallel
	$(PYTEST) -n auto

test-kernels: $(VENV)/.ready  ## the numerical tests on the BLAS kernels of another processor, with two threads
	OPENBLAS_CORETYPE=$(or $(CORE),Haswell) OPENBLAS_NUM_THREADS=2 NUMBA_NUM_THREADS=1 $(BIN)/python -m pytest -q -n 2 \
		tests/data tests/model tests/fit tests/curvature tests/solvers tests/properties -m 'not slow'

defaults: $(VENV)/.ready  ## the errors of every default on small sets, against those published
	$(ONE_THREAD) $(BIN)/python -m benchmarks.battery --against benchmarks/results/battery_errors.md --limit 60

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: $(VENV)/.ready
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.ready
	$(BIN)/mypy

readme: $(VENV)/.ready  ## the examples in README.md, in the documentation and in the docstrings, run as they stand
	$(PYTEST) -q --doctest-glob='*.md' README.md CONTRIBUTING.md docs
	$(PYTEST) -q --doctest-modules src/manyclass

docs: $(VENV)/.docs  ## the site, gallery included, in docs/_build/html; a warning is an error
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

$(VENV)/.docs: $(VENV)/.ready requirements/docs.lock
	$(BIN)/python -m pip install --quiet -r requirements/docs.lock
	touch $@

check: lint types readme docs test test-kernels defaults

$(VENV)/.ready: pyproject.toml requirements/dev.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and \
	"manyclass needs Python 3.11 or newer; name one with: make PYTHON=/path/to/python3.12")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements/dev.lock
	$(BIN)/$(INSTALL_TORCH)
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	touch $@

# Other environments than .venv, each from a lock or the lowest versions that pyproject.toml admits.
clients: .venv-clients/.ready  ## what other packages do with our estimators (docs/clients.md)
	$(ONE_THREAD) .venv-clients/bin/python -m pytest -q tests/clients

.venv-clients/.ready: requirements/clients.lock | $(VENV)/.ready
	$(PYTHON) -m venv --clear $(@D)
	$(UV) pip install --quiet --python $(@D) --no-deps -r requirements/clients.lock || { echo \
		'The clients could not be installed, so nothing is known of them: uv says above what was missing.'; exit 1; }
	$(@D)/bin/$(INSTALL_TORCH)
	$(UV) pip install --quiet --python $(@D) --no-deps --editable .
	touch $@

wheel: $(VENV)/.ready  ## the wheel and the source distribution, in dist/
	rm -rf dist
	$(UV) build --quiet --out-dir dist
	$(UV) tool run --quiet twine check --strict dist/*

# What needs nothing but pytest and the package, run from the source distribution.
SMOKE := tests/test_package.py tests/release tests/linear_model tests/cli/test_predict.py tests/subgradient/test_losses.py

test-wheel: wheel  ## the wheel in a fresh environment: the newest versions of what it needs, and no extras
	$(PYTHON) -m venv --clear .venv-wheel
	$(UV) pip install --quiet --python .venv-wheel pytest dist/*.whl
	tar -xzf dist/*.tar.gz -C .venv-wheel
	cd .venv-wheel/manyclass-* && rm -r src && $(ONE_THREAD) ../bin/python -m pytest -q -p no:cacheprovider $(SMOKE)

# Every dependency at work: arrays and frames, files and models of each kind, compiled loops, ONNX, plots, the terminal.
OLDEST := $(SMOKE) tests/data/test_rows.py tests/data/test_readers_text.py tests/data/test_readers_binary.py \
	tests/model tests/fit tests/solvers tests/dual/test_homotopy.py tests/export tests/diagnostics/test_displays.py \
	tests/cli/test_modelfile.py tests/cli/test_terminal.py

test-oldest: $(VENV)/.ready  ## a part of the tests, with the oldest versions that pyproject.toml admits
	$(PYTHON) -m venv --clear .venv-oldest
	$(UV) pip compile --quiet --resolution lowest-direct --no-annotate --no-header --python .venv-oldest \
		--extra arff --extra export --extra frames --extra plot pyproject.toml -o .venv-oldest/lock.txt
	$(UV) pip install --quiet --python .venv-oldest -r .venv-oldest/lock.txt \
		array-api-strict hypothesis psutil pytest pytest-xdist
	$(UV) pip install --quiet --python .venv-oldest --no-deps --editable .
	$(ONE_THREAD) .venv-oldest/bin/python -m pytest -q -n auto -m 'not slow' $(OLDEST)

lock: $(VENV)/.ready  ## resolve the newest versions again, for every platform
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate \
		--custom-compile-command 'make lock' --extra dev pyproject.toml requirements/torch-deps.in \
		-o requirements/dev.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate \
		--custom-compile-command 'make lock' --extra bench pyproject.toml -c requirements/dev.lock \
		-o requirements/bench.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate \
		--custom-compile-command 'make lock' --extra clients --extra dask --extra export --no-emit-package torch \
		--override requirements/no-torch.in pyproject.toml requirements/torch-deps.in -o requirements/clients.lock
	$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --no-annotate \
		--custom-compile-command 'make lock' --extra docs pyproject.toml -c requirements/dev.lock \
		-o requirements/docs.lock

# Benchmarks take minutes, want an otherwise idle machine, and use every core.
bench-peers: $(VENV)/.ready
	$(UV) pip install --quiet --python $(VENV) -r requirements/bench.lock

bench-softmax-path bench-many-classes bench-memory bench-accuracy bench-profile bench-bound bench-dual \
	bench-stagewise bench-stochastic: bench-%: bench-peers
	$(BIN)/python -m benchmarks.$(subst -,_,$*)

uncompiled:  ## without the loops that Numba keeps, which do not see that what they take from another file has changed
	find src -name '*.nb[ci]' -delete

clean: uncompiled
	rm -rf $(VENV) .venv-* build dist docs/_build docs/gallery docs/generated docs/results .mypy_cache .pytest_cache \
		.ruff_cache .hypothesis
