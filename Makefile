# `make run` and `make test` set everything up by themselves; `make help` lists the rest.
# Needs Python 3.11 or newer with its venv module, and make.

PYTHON ?= $(shell for p in python3 python3.13 python3.12 python3.11 python; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { echo $$p; break; }; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CODE := src tests benchmarks docs examples

.DEFAULT_GOAL := help
.PHONY: help setup run test check browser lint types format docs reproduction-docs bench bench-mpi bench-agents bench-apart bench-auto bench-battery bench-constants bench-drift bench-estimators bench-links bench-loss bench-newton bench-peers clean

help:  ## show this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "make %-12s %s\n", $$1, $$2}'

setup: $(READY)  ## create .venv with everything pinned in constraints.txt

$(READY): pyproject.toml constraints.txt
	@test -n "$(PYTHON)" || { echo "error: no Python 3.11 or newer with venv was found; install one, or say make PYTHON=/path/to/python3"; exit 1; }
	@echo "Setting up $(VENV) with $$($(PYTHON) --version); once, a few minutes."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[mpi]' \
		|| echo "No MPI could be installed: engine mpi and its tests are left out."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[agents]' \
		|| echo "No Zenoh could be installed: agents over a network and their tests are left out."
	@$(BIN)/python -m compileall -q src
	@$(BIN)/python -m adom.native
	@touch $(READY)

run: $(READY)  ## reproduce the paper in miniature (a minute; three with the data sets): figures, tables and a ledger of its claims in out/
	@$(BIN)/adom reproduce --quick --out out/reproduce

# mypy works beside the tests, since it has one core only; either may fail.
test: lint browser  ## check style and types, run all tests
	@$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest; tests=$$?; wait $$types && exit $$tests

# As `test`, without the tests that start processes, the site and the browser.
check: lint  ## check style and types, run the tests that start no process (two minutes)
	@$(BIN)/mypy & types=$$!; $(BIN)/python -m pytest -m "not process"; tests=$$?; wait $$types && exit $$tests

# The report's page is tested in a browser; where none is and none may be installed, those tests are skipped.
browser:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null && exit 0; done; \
	test "$$(id -u)" = 0 && command -v apt-get >/dev/null || exit 0; \
	echo "Installing Chromium for the tests of the report's page; once."; \
	export DEBIAN_FRONTEND=noninteractive; \
	{ apt-get install -y -qq chromium || { apt-get update -qq && apt-get install -y -qq chromium; }; } >/dev/null 2>&1 \
		|| echo "No Chromium could be installed: the tests of the page in a browser are left out."

lint: $(READY)  ## ruff: rules and formatting; no imports in a circle, no file too long
	@$(BIN)/ruff check $(CODE)
	@$(BIN)/ruff format --check --quiet $(CODE)
	@$(BIN)/python tests/support/rooms.py

types: $(READY)  ## mypy, strict
	@$(BIN)/mypy

format: $(READY)  ## ruff: mend what can be mended
	@$(BIN)/ruff check --fix $(CODE)
	@$(BIN)/ruff format $(CODE)

docs: $(READY)  ## write the pages that document themselves, build the site into out/site (half a minute)
	@$(BIN)/python docs/generate.py
	@rm -rf docs/gallery
	@JAX_PLATFORMS=cpu $(BIN)/python -m sphinx -qaEW --keep-going -b html -d out/site-doctrees docs out/site
	@echo "wrote out/site/index.html"

reproduction-docs: $(READY)  ## docs/ledger.md, findings.md, figures and full_run.json from a full run in FOLDER (out/reproduce)
	@$(BIN)/python docs/from_reproduction.py $(or $(FOLDER),out/reproduce)

bench: $(READY)  ## speed of a round, of sweeps, sparse data, large networks, a GPU; leaves out/bench (three minutes)
	@$(BIN)/python benchmarks/run.py

bench-mpi: $(READY)  ## engine mpi against the local one, bytes on the wire, memory per rank, 100 ranks (ten minutes)
	@$(BIN)/python benchmarks/mpi.py --ranks 100

bench-apart: $(READY)  ## 2 GB of shards over four ranks: memory of each, and the time of a gradient from the disk (two minutes)
	@$(BIN)/python benchmarks/apart.py

bench-auto: $(READY)  ## cost of the auto oracle against every fixed number of inner steps (five minutes)
	@$(BIN)/python benchmarks/auto.py

bench-battery: $(READY)  ## the default oracle against the exact one on 500 random settings, all methods on 40 networks whose rounds connect few; fails if one does worse (an hour)
	@$(BIN)/python benchmarks/battery.py

bench-constants: $(READY)  ## parameters auto against theory, unit and the best chi on 300 random settings (an hour on two cores)
	@$(BIN)/python benchmarks/constants_battery.py

bench-agents: $(READY)  ## 2, 8 and 32 agents: rounds a second, bytes, memory; then ten minutes with faults all along (twelve minutes)
	@$(BIN)/python benchmarks/agents.py
	@$(BIN)/python benchmarks/agents.py --soak 600

bench-drift: $(READY)  ## ADOM and ADOM+ for a million rounds: do they stay at their floor? (ten minutes)
	@$(BIN)/python benchmarks/drift.py

bench-estimators: $(READY)  ## fits of the estimators by several methods, on networks that change and that do not (ten minutes)
	@$(BIN)/python benchmarks/estimators.py

bench-links: $(READY)  ## every method with late, coarse, partial and noisy messages (a quarter of an hour)
	@$(BIN)/python benchmarks/links.py

bench-loss: $(READY)  ## every method with 0, 10, 30 and 50 % of the messages lost, healing and as printed (two minutes)
	@$(BIN)/python benchmarks/loss.py

bench-newton: $(READY)  ## Newton by gossip on 300 random settings against plain averaging, then with a fifth of the messages lost (half an hour)
	@$(BIN)/python benchmarks/newton.py
	@$(BIN)/python benchmarks/newton.py --faults --out out/newton-faults.json

bench-peers: $(READY)  ## 1,000 rounds by adom, plain NumPy, plain JAX and other tools (three minutes; options as PEERS="--repeats 5")
	@$(BIN)/python benchmarks/peers.py $(PEERS)

clean:  ## remove what make and the tools made
	@rm -rf $(VENV) out docs/gallery dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
	@find $(CODE) -name __pycache__ -type d -prune -exec rm -rf {} +
