# Everything a newcomer needs: `make demo` and `make test` set up what they use.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Modules are compiled once: tests start programs some hundreds of times.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: install demo test lowest manifests docs links control-plane e2e check benchmark performance plots faults parity-oracle mutants mutants-by-hand dist requirements supply-chain sbom licences audit image image-test clean

install: $(VENV)/.installed

PIP_INSTALL := -m pip install --quiet --disable-pip-version-check
# What runs in production, by hash; beside it what only developers need, by version.
$(VENV)/.installed: setup.cfg pyproject.toml requirements.txt constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python $(PIP_INSTALL) --require-hashes -r requirements.txt
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[dev]'
	touch $@

demo: install
	$(BIN)/gang-extender demo

# Three files at a time, in the order of tests/e2e/conftest.py: what starts a control plane waits now and then.
test: install
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder tests

# Etcd, kube-apiserver, kube-scheduler and kubectl from source, once; KUBE_SCHEDULER_VERSION=1.30.14 tries another scheduler,
# KUBE_APISERVER_VERSION=1.37.2 another API server.
control-plane: install
	$(BIN)/python -m tests.e2e.build

# The tests of what meets the dependencies, with the oldest versions of these that setup.cfg lets in; minutes, not in CI.
LOWEST := .venv-lowest
EDGES := tests/unit/api tests/unit/cli tests/unit/client tests/unit/config tests/unit/framework tests/server
lowest:
	$(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python $(PIP_INSTALL) -c constraints-lowest.txt -e '.[server]' \
		hypothesis jsonschema pytest pytest-timeout trustme websockets
	$(LOWEST)/bin/python -m pytest -p no:cacheprovider $(EDGES)

# install.yaml of manifests/sidecar, by kustomize of the kubectl that control-plane builds.
manifests: install
	$(BIN)/python -m tests.e2e.install_yaml

# The pages as a site, in docs/_build/html: a link within it that leads nowhere is an error. `make links` asks the others, over the network.
SPHINX := $(BIN)/python -m sphinx --quiet --fail-on-warning --keep-going
docs: install
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[docs]'
	$(SPHINX) -b html docs docs/_build/html

links: docs
	$(SPHINX) -b linkcheck docs docs/_build/links

# EARLY_START=false: all stories without early start, but those that are about it. OVER_TLS=all: more of them over TLS as well.
e2e: control-plane
	EARLY_START=$(EARLY_START) OVER_TLS=$(OVER_TLS) $(BIN)/python -m pytest tests/e2e

check: install
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# All of them, or those that are named: `make benchmark scale`. RESULTS=folder keeps what the benchmarks of docs/performance.md measure.
BENCHMARKS := $(filter $(basename $(notdir $(wildcard tests/benchmark/*.py))),$(MAKECMDGOALS))
benchmark: install
	BENCHMARK_RESULTS=$(RESULTS) $(BIN)/python -m tests.benchmark $(or $(ONLY),$(BENCHMARKS))

# What docs/performance.md says, measured anew, for hours on a machine that does nothing else; `make plots` then draws and writes it.
performance: ONLY := gangs contention stream gathering samples status_writes real_objects loop_stalls
performance: RESULTS := docs/performance
performance: benchmark

plots: install
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[plots]'
	$(BIN)/python -m tests.benchmark.pictures docs/performance
	$(BIN)/python -m tests.benchmark.performance_page docs/performance.md

.PHONY: $(BENCHMARKS)
$(BENCHMARKS): benchmark
	@:

# Faults at random, and judges: docs/fault-runs.md. CHECK=folder judges an earlier run again, MINIMISE=folder looks for fewer of its acts.
faults: install
	$(if $(PLOT),$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[plots]')
	$(BIN)/python -m tests.e2e.fault_run $(if $(CHECK),--check $(CHECK)) $(if $(MINIMISE),--minimise $(MINIMISE)) \
	  $(if $(PLOT),--plot $(PLOT)) $(if $(OUTPUT),--output $(OUTPUT)) \
	  --seed $(or $(SEED),1) --minutes $(or $(MINUTES),3) --runs $(or $(RUNS),1) $(if $(KINDS),--kinds "$(KINDS)") $(if $(HOSTILE),--hostile)

# `evaluate` beside the real plugins, compiled with Go, on thousands of scenarios that are made anew; SEED=n makes others.
SEED ?= 1
COUNT ?= 1000
parity-oracle: install
	$(BIN)/python -m tests.parity.record_fresh --compare $(SEED) $(COUNT)

# Which small changes of FILES no test of their room sees; TESTS=path takes other tests, SAMPLE=N tries N of all. In a copy of the
# tree; not part of the tests. SEED=n draws others.
mutants: install
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[mutants]'
	$(BIN)/python -m tests.mutation $(FILES) $(if $(TESTS),--tests $(TESTS)) $(if $(SAMPLE),--sample $(SAMPLE) --seed $(SEED))

mutants-by-hand: install
	$(BIN)/python -m tests.mutation.by_hand $(ONLY)

# Wheel and sdist, byte for byte the same for all that build this commit.
dist: install
	SOURCE_DATE_EPOCH=$$(git log -1 --format=%ct) $(BIN)/python -m build --no-isolation --outdir dist .

# Locks requirements.txt and requirements-build.txt anew: what setup.cfg lets in, no other than those that are there; UPGRADE=1 takes the newest.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-annotate \
	--custom-compile-command 'make requirements' $(if $(UPGRADE),--upgrade)
requirements: supply-chain
	$(LOCK) --extra server setup.cfg -o requirements.txt
	echo setuptools | $(LOCK) --constraint constraints.txt - -o requirements-build.txt

supply-chain: install
	$(BIN)/python $(PIP_INSTALL) -c constraints.txt -e '.[supply-chain]'

# What is in the image and nothing else: dist/sbom.cdx.json (CycloneDX), docs/licences.md, and known vulnerabilities, which takes a network.
RUNTIME := build/runtime
$(RUNTIME): requirements.txt
	$(PYTHON) -m venv --clear $(RUNTIME)
	$(RUNTIME)/bin/python $(PIP_INSTALL) --only-binary=:all: --require-hashes -r requirements.txt
	$(RUNTIME)/bin/python $(PIP_INSTALL) --no-deps .
	$(RUNTIME)/bin/python -m pip uninstall --quiet --yes setuptools pip
	touch $@

sbom: supply-chain $(RUNTIME)
	mkdir -p dist
	$(BIN)/cyclonedx-py environment --output-reproducible -o dist/sbom.cdx.json $(RUNTIME)/bin/python
	SBOM=dist/sbom.cdx.json $(BIN)/python -m pytest tests/unit/test_supply_chain.py -k bill_of_materials

licences: supply-chain $(RUNTIME)
	$(BIN)/python -m tests.licences $(BIN)/pip-licenses $(RUNTIME)/bin/python

audit: supply-chain
	$(BIN)/pip-audit --require-hashes --disable-pip -r requirements.txt

# The image by buildah, without a daemon: of the Dockerfile's own base with BASE=, where a registry can be reached, else of a Debian with its
# Python, by debootstrap. Then it is started from its root file system. As root; this machine's pip.conf and certificates count in the build too.
IMAGE := build/image
BUILDAH := buildah --storage-driver vfs --root $(CURDIR)/$(IMAGE)/store --runroot $(CURDIR)/$(IMAGE)/run
DEBIAN := bookworm
$(IMAGE)/debian:
	mkdir -p $(IMAGE)
	rm -rf $@.new
	debootstrap --variant=minbase --include=python3,python3-venv,python-is-python3,ca-certificates $(DEBIAN) $(IMAGE)/debian.new >$(IMAGE)/debootstrap.log
	mv $@.new $@

image: $(if $(BASE),,$(IMAGE)/debian)
	mkdir -p $(IMAGE)
	$(if $(BASE),,made=$$($(BUILDAH) from scratch) && $(BUILDAH) add --quiet $$made $(IMAGE)/debian / && \
		$(BUILDAH) commit --quiet --rm $$made localhost/debian-python)
	$(BUILDAH) bud --quiet --isolation chroot --network host --build-arg BASE=$(or $(BASE),localhost/debian-python) \
		$(foreach file,$(wildcard /etc/pip.conf /etc/ssl/certs),--volume $(file):$(file):ro) --tag localhost/gang-extender .

image-test: install image
	made=$$($(BUILDAH) from localhost/gang-extender) && \
	IMAGE_ROOT=$$($(BUILDAH) mount $$made) $(BIN)/python -m pytest tests/image; \
	tested=$$?; $(BUILDAH) rm $$made >/dev/null; exit $$tested

clean:
	rm -rf $(VENV) $(LOWEST) build dist docs/_build docs/_generated *.egg-info
