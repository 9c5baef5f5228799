# Everything starts here: `make up` for running tables, `make test` for the proof. Each target sets up what it needs.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LASTWORD := $(BIN)/lastword
STAMP := $(VENV)/.installed
# The generator of the site has its own environment, because it is large and only `make site` needs it.
SITE_VENV := .venv-site
SITE_STAMP := $(SITE_VENV)/.installed
# So has the package: what checks and lints it is large, and only `make package` needs it.
PACKAGE_VENV := .venv-package
PACKAGE_STAMP := $(PACKAGE_VENV)/.installed
SOAK_ROUNDS ?= 10
# The tests wait more than they work: three at a time keep two cores busy.
WORKERS ?= 3
# A test that hangs shows where, and ends as failed: every wait of a test has a shorter limit. (Those of a soak may take long.)
BOUNDED := $(BIN)/python -m pytest -o faulthandler_timeout=600 -o faulthandler_exit_on_timeout=true
UNIT := $(BOUNDED) tests/unit --numprocesses 2
# Of the tests on Kafka those that also run on a cluster that is locked; `make soak` takes them all.
LOCKED := $(addprefix tests/kafka/test_,row_verbs.py groups.py)

.PHONY: help setup up down test soak check coverage bench docs site package screenshots lock clean

help:
	@echo "make setup   the virtual environment .venv with the command lastword, the jars of Kafka and Spark, and both made ready"
	@echo "make up      Kafka, generated users, the pipeline on Spark, HTTP; prints 'ready' (PORT=29092 HTTP_PORT=28090 for other ports, SECURE=1: locked)"
	@echo "make down    end it all (the data is kept)"
	@echo "make test    the tests, on real Kafka, real Spark and a real browser"
	@echo "make check   lint, types, layers and unit tests (under a minute)"
	@echo "make coverage  the unit tests, and which lines of each module they run"
	@echo "make soak    the crash tests with their counts turned up"
	@echo "make bench   the benchmarks, into docs/benchmarks.md"
	@echo "make screenshots  every view of the console, light and dark, into docs/screenshots/"
	@echo "make docs    write the generated pages of docs/ again"
	@echo "make site    the documentation as a site, into site/; a dead link fails"
	@echo "make package  wheel and sdist, into dist/, checked; the wheel is installed elsewhere and runs without the checkout"
	@echo "make lock    resolve requirements.lock, the packages of the site, the package and the benchmarks and the jar locks again"
	@echo "make clean   remove the virtual environment and caches"

setup: $(STAMP)
	@$(LASTWORD) broker fetch

# The command line is a real file, not a pattern, so that an interrupted install starts again.
$(STAMP): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "lastword needs Python 3.11 or newer; say which with  make PYTHON=python3.12 ..." >&2; exit 2; }
	@echo "setting up $(VENV) (about a minute the first time)"
	@$(PYTHON) -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m compileall -q src
	@touch $(STAMP)

up: setup
	@$(LASTWORD) up --detach $(if $(PORT),--port $(PORT)) $(if $(HTTP_PORT),--http-port $(HTTP_PORT)) $(if $(SECURE),--secure)

down: $(STAMP)
	@$(LASTWORD) down

test: setup check
	$(BOUNDED) tests/kafka tests/faults -m "not long" --numprocesses $(WORKERS) --dist worksteal --durations 15
	$(BOUNDED) $(LOCKED) --security scram-tls --numprocesses $(WORKERS) --dist worksteal
	$(BOUNDED) tests/spark tests/faults -m quick --durations 5
	$(BOUNDED) tests/browser -m "not long" --numprocesses 2 --dist loadfile --durations 5

soak: setup
	LASTWORD_SOAK=$(SOAK_ROUNDS) $(BIN)/python -m pytest tests/kafka tests/faults -m "soak or long"
	LASTWORD_SOAK=$(SOAK_ROUNDS) $(BIN)/python -m pytest tests/spark
	LASTWORD_SOAK=$(SOAK_ROUNDS) $(BIN)/python -m pytest tests/browser -m "soak or long"
	$(BIN)/python -m pytest tests/kafka -m "not long" --security scram-tls --numprocesses $(WORKERS) --dist worksteal

# mypy runs beside the tests, which also wait. Its answer comes after theirs; either of them fails the check.
check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	@mkdir -p .mypy_cache; $(BIN)/mypy >.mypy_cache/answer 2>&1 & types=$$!; \
	echo '$(UNIT)'; $(UNIT); unit=$$?; \
	wait $$types; types=$$?; echo '$(BIN)/mypy'; cat .mypy_cache/answer; exit $$((unit || types))

coverage: $(STAMP)
	$(UNIT) --cov --cov-report=term:skip-covered

bench: setup
	$(BIN)/python -m benchmarks all --write docs/benchmarks.md

screenshots: setup
	PYTHONPATH=tests $(BIN)/python scripts/screenshots.py

docs: $(STAMP)
	$(BIN)/python scripts/write_docs.py

$(SITE_STAMP): requirements-site.lock
	@$(PYTHON) -m venv --clear $(SITE_VENV)
	@$(SITE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-site.lock
	@touch $(SITE_STAMP)

site: $(STAMP) $(SITE_STAMP)
	$(BIN)/python scripts/gather_pages.py build/pages
	rm -rf site
	$(SITE_VENV)/bin/zensical build --clean --strict
	$(BOUNDED) tests/site -q

$(PACKAGE_STAMP): requirements-package.lock
	@$(PYTHON) -m venv --clear $(PACKAGE_VENV)
	@$(PACKAGE_VENV)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement requirements-package.lock
	@touch $(PACKAGE_STAMP)

package: setup $(PACKAGE_STAMP)
	rm -rf dist
	$(BIN)/python -m hatchling build
	$(PACKAGE_VENV)/bin/twine check --strict dist/*
	$(BOUNDED) tests/package -q --durations 5

lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --all-extras --group dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --quiet --output-file requirements.lock
	$(BIN)/uv pip compile pyproject.toml --constraint requirements.lock --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file deploy/requirements.lock
	$(BIN)/uv pip compile --group site --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements-site.lock
	$(BIN)/uv pip compile --group package --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --no-header --no-annotate --quiet --output-file requirements-package.lock
	printf 'duckdb==2.0.0\nfastapi==0.162.4\nkafka-python==3.0.12\nlz4==4.4.5\nquixstreams==3.28.1\nuvicorn[standard]==0.54.0\n' | $(BIN)/uv pip compile - --universal \
		--python-version 3.11 --generate-hashes --no-emit-index-url --no-header --no-annotate --quiet \
		--output-file benchmarks/alternatives/python.lock
	$(BIN)/python scripts/lock_jars.py

clean:
	rm -rf $(VENV) $(SITE_VENV) $(PACKAGE_VENV) site .coverage .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache dist build
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
