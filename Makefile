# Every command of this project. They run from .venv in the checkout, which set-up fills and keeps up to date.

PYTHON ?= python3
BIN    := .venv/bin
PYTEST := $(BIN)/python -m pytest -q --dist worksteal
QUICK  := $(PYTEST) -n logical --hypothesis-profile quick tests/unit

# Tests start hundreds of Python processes. Without bytecode files each of them compiles every library again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-test setup-check demo serve quick check test screenshots bench format docs lock audit sbom clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: ## Environment, packages and browser: all that `demo` and `serve` need
	@$(PYTHON) scripts/setup.py demo

setup-test:
	@$(PYTHON) scripts/setup.py test

setup-check:
	@$(PYTHON) scripts/setup.py test --no-browser

demo: setup ## Judge the shipped example end to end: server, browser, scorecard (no key, no internet)
	@$(BIN)/assay demo

serve: setup ## Start the service on 127.0.0.1:8000
	@$(BIN)/assay serve

quick: setup-check ## Run the unit tests, without browser, server or database: seconds
	@$(QUICK)

check: setup-check ## Check format, lint, types and import contracts, then run the quick tests
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(QUICK)

test: setup-test check ## Run `check`, then every test, with a real browser, PostgreSQL and the S3 protocol
	@$(PYTEST) -n auto

screenshots: setup-test ## Take the pictures in docs/screenshots anew: every page, wide and narrow, light and dark
	@$(BIN)/python -m tests.screenshots

bench: setup-test ## Measure against the figures to beat, with a stand-in model and pages of our own
	@$(BIN)/python -m tests.bench

format: setup-check ## Put the code into the one format
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

docs: setup-check ## Check the documents against the code: links, settings, commands, calls
	@$(BIN)/python -m pytest -q tests/architecture/test_documents.py

LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11
lock: setup-check ## Resolve the locks anew (UPGRADE=--upgrade for newer versions); review the diff
	@$(LOCK) $(UPGRADE) pyproject.toml --group dev -o requirements-dev.lock
	@$(LOCK) pyproject.toml -c requirements-dev.lock -o requirements.lock
	@$(LOCK) --group pyproject.toml:bootstrap -c requirements-dev.lock -o requirements-bootstrap.lock

SETUP ?= setup-check
audit: $(SETUP) ## Look up every locked package among known vulnerabilities (needs the internet)
	@$(BIN)/python scripts/audit.py

SBOM ?= build/sbom.cdx.json
sbom: $(SETUP) ## Write what the lock pins as a CycloneDX bill of materials (SBOM=FILE)
	@mkdir -p $(dir $(SBOM))
	@$(BIN)/cyclonedx-py requirements --output-reproducible --of JSON -o $(SBOM) requirements.lock
	@echo $(SBOM)

clean: ## Remove the environment and every cache; ./data stays
	rm -rf .venv .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
