# Every target sets up what it needs in .venv first, and does that again only when the pins change.
PYTHON ?= python3
DATA_DIR ?= data
# The nodes of make cluster
NODES ?= 3
# The tests of one run: make test ARGS="tests/unit -k names"
ARGS ?=
# The storms of one run: make sim SEEDS=17, or SEEDS=1-1000
SEEDS ?= 1-100
# What they are storms of: make sim KIND=cluster SEEDS=1-1000, or KIND=rules
KIND ?= storms
# How long nodes are troubled, and by which dice: make nemesis MINUTES=10 NODES=3 SEED=8
MINUTES ?= 10
SEED ?=
# The benchmarks of one run: make bench ONLY=records
ONLY ?=

BIN := .venv/bin
PINS := requirements/run.txt pyproject.toml tools/setup

.DEFAULT_GOAL := help
.PHONY: help install run test test-rest test-all test-ops test-spark image deb sim nemesis check format bench demo etcd cluster protos go-protos api golden pictures docs release

help:  ## show the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: .venv/.ready-run  ## set up only; gives .venv/bin/goqueue

run: .venv/.ready-run  ## start a node on ./data, open to this machine only
	@exec $(BIN)/goqueue serve --dev --data-dir $(DATA_DIR)

# One worker more than there are cores: many tests wait for a process or a disk. What pytest compiles is kept, even
# where Python is told not to: else each worker would do it again, for half a minute.
PYTEST := PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n $$(($$(nproc) + 1)) --maxprocesses 8

# With ARGS the choice is yours: no layer is left out.
test: .venv/.ready-dev  ## run unit tests, simulations and one test of each API; choose others with ARGS=
	@$(PYTEST) $(if $(ARGS),$(ARGS),-m "not second_layer and not ops")

test-rest: .venv/.ready-dev  ## run the tests that make test leaves out: whole nodes, real clients, Spark
	@$(PYTEST) -m second_layer

test-all: .venv/.ready-dev  ## run all tests but those of make test-ops
	@$(PYTEST) -m "not ops"

# Two at a time: each of them is a compiler, or a node and its clients. What needs more is left out where it is missing.
CONTAINERS := podman buildah runc mmdebstrap dpkg-deb strip systemd-analyze
test-ops: .venv/.ready-dev  ## run the tests that need Go and Node, and fail where one is missing; those of images where podman is, those of Django where Python 3.12 is
	@$(BIN)/python -m tools.needed go gofmt node npm
	@without=""; \
	$(BIN)/python -m tools.needed $(CONTAINERS) || { without=" and not image"; echo "the tests of images are left out" >&2; }; \
	$(BIN)/python -m tools.newer_python 3.12 >/dev/null || { without="$$without and not newer_python"; echo "the tests of Django are left out" >&2; }; \
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 -m "ops$$without" tests/ops $(ARGS)

image: .venv/.ready-dev  ## build the image goqueue:dev with podman
	@$(BIN)/python -m tools.image wheels
	@podman build --format docker --tag goqueue:dev .

deb: .venv/.ready-dev  ## build dist/goqueue_VERSION_ARCHITECTURE.deb, for the Debian of this machine
	@$(BIN)/python -m tools.deb

test-spark: .venv/.ready-dev  ## run the tests on Spark alone
	@PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 tests/integration/spark $(ARGS)

sim: .venv/.ready-dev  ## run a node and its users through storms, with KIND=cluster three nodes, with KIND=rules copies of a partition; SEEDS=1-1000
	@$(BIN)/python -m tools.simulate --kind $(KIND) --seeds $(SEEDS)

nemesis: .venv/.ready-dev  ## kill, pause and cut real nodes under load, and check what clients were told; MINUTES=, SEED=, NODES=1 or 3
	@$(BIN)/python -m tools.nemesis --minutes $(MINUTES) --nodes $(NODES) $(if $(SEED),--seed $(SEED))

check: .venv/.ready-dev  ## lint, format, types and room rules
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo

format: .venv/.ready-dev  ## put the code into the shape that check asks for
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: .venv/.ready-dev  ## measure; writes benchmarks/results/ and RESULTS.md; choose with ONLY=
	@$(BIN)/python -m benchmarks $(ONLY)

demo: .venv/.ready-dev  ## orders in, enriched by Spark, to a topic, a lake and a table of Iceberg; ends by itself
	@$(BIN)/python examples/orders/demo.py

etcd: .venv/.ready-run  ## build etcd from its sources, once, and say where it is
	@$(BIN)/python -m tools.etcd

# The data is below DATA_DIR; NODES=5 for more of them.
cluster: .venv/.ready-run  ## start three nodes and an etcd on this machine, with data in ./data/cluster
	@$(BIN)/python -m tools.etcd >/dev/null
	@exec $(BIN)/goqueue cluster dev --nodes $(NODES) --data-dir $(DATA_DIR)/cluster

protos: .venv/.ready-dev  ## write the Python of api/proto anew
	@$(BIN)/python -m tools.protos

go-protos: .venv/.ready-dev  ## write the Go of api/proto anew
	@$(BIN)/python -m tools.go_protos

api: .venv/.ready-dev  ## write api/*.json, and the lists in docs/, anew from the code; RELEASE=1: from now on they must not be broken
	@$(BIN)/python -m tools.api $(if $(RELEASE),--release)

golden: .venv/.ready-dev  ## add what this version stores to tests/golden/stored.jsonl
	@$(BIN)/python -m tools.golden

pictures: .venv/.ready-dev  ## take the pictures of the console in docs/ anew
	@GOQUEUE_PICTURES=1 $(BIN)/python -m pytest -q tests/integration/test_console.py tests/integration/test_console_work.py tests/integration/test_console_control.py

docs: .venv/.ready-dev  ## build the documentation as a site in build/site, and check all its links
	@$(BIN)/python -m tools.site

release: .venv/.ready-dev  ## make a release: VERSION=0.2.0; commits, tags, builds dist/*.whl
	@$(BIN)/python -m tools.release $(VERSION)

.venv/.ready-run: $(PINS)
	@PYTHON="$(PYTHON)" tools/setup run

.venv/.ready-dev: $(PINS) requirements/dev.txt
	@PYTHON="$(PYTHON)" tools/setup dev
