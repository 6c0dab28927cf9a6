# Development commands. They run in .venv, which the set-up targets create and update.

PYTHON ?= python3
BIN    := .venv/bin
PYTEST := $(BIN)/python -m pytest -q
QUICK  := $(PYTEST) -n logical --dist worksteal -m "not slow and not hypothesis" tests/unit
REST   := $(PYTEST) -n auto --dist loadfile --no-loadscope-reorder -m "slow or hypothesis or not unit"

# Tests start hundreds of Python processes. Without bytecode files, each of them would compile every library again.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup setup-all setup-test setup-check demo serve quick check test screenshots bench format client docs lock audit sbom clean

help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 20

setup: ## Install what `demo` and `serve` need: environment, packages, browser
	@$(PYTHON) scripts/setup.py demo

setup-all: ## Install also the extras: statistics, suites, bedrock
	@$(PYTHON) scripts/setup.py all

setup-test:
	@$(PYTHON) scripts/setup.py test

setup-check:
	@$(PYTHON) scripts/setup.py test --no-browser

demo: setup ## Judge the example answers end to end (needs no key or internet)
	@$(BIN)/assay demo

serve: setup ## Start the service on 127.0.0.1:8000
	@$(BIN)/assay serve

quick: setup-check ## Run the fast unit tests: no property tests, browser, server or database
	@$(QUICK)

check: setup-check ## Check format, lint, types and import contracts, then run `quick`
	@$(BIN)/ruff format --check .
	@$(BIN)/ruff check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(QUICK)

test: setup-test check ## Run `check`, then all tests with a real browser, PostgreSQL and the S3 protocol
	@$(REST)

screenshots: setup-test ## Regenerate docs/screenshots: every page, wide and narrow, light and dark
	@$(BIN)/python -m tests.screenshots

bench: setup-test ## Run the benchmarks against their targets, with a fake model and local pages
	@$(BIN)/python -m tests.bench

format: setup-check ## Format the code and fix lint errors
	@$(BIN)/ruff format .
	@$(BIN)/ruff check --fix .

client: setup-check ## Generate client/ and the operations in docs/http-api.md from the OpenAPI document
	@$(BIN)/python scripts/generate_client.py

docs: setup-check ## Check the documents against the code, and build them as a site with search in build/docs
	@$(PYTEST) tests/architecture/test_documents.py
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --quiet --strict
	@echo 'Built build/docs. To read it: $(BIN)/python -m http.server --bind 127.0.0.1 --directory build/docs 8001'

LOCK := $(BIN)/uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --universal --python-version 3.11
lock: setup-check ## Regenerate the lock files (UPGRADE=--upgrade for newer versions); review the diff
	@$(LOCK) $(UPGRADE) pyproject.toml --all-extras --group dev -o requirements-dev.lock
	@$(LOCK) pyproject.toml --all-extras -c requirements-dev.lock -o requirements-all.lock
	@$(LOCK) pyproject.toml -c requirements-dev.lock -o requirements.lock
	@$(LOCK) --group pyproject.toml:bootstrap -c requirements-dev.lock -o requirements-bootstrap.lock

SETUP ?= setup-check
audit: $(SETUP) ## Check the locked packages for known vulnerabilities (needs the internet)
	@$(BIN)/python scripts/audit.py

SBOM ?= build/sbom.cdx.json
sbom: $(SETUP) ## Write a CycloneDX SBOM of requirements-all.lock (SBOM=FILE)
	@mkdir -p $(dir $(SBOM))
	@$(BIN)/cyclonedx-py requirements --output-reproducible --of JSON -o $(SBOM) requirements-all.lock
	@echo $(SBOM)

clean: ## Remove the environment and all tool caches; keep ./data
	rm -rf .venv build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
