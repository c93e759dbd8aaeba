# A thin front for CMake, pip and the test runners; `make help` lists what there is.
SHELL := /bin/bash
.DEFAULT_GOAL := build

PYTHON ?= python3
JOBS ?= $(shell nproc)
PREFIX ?= /usr/local
MODELS ?= models
FUZZ_SECONDS ?= 600
FUZZ_TARGET ?= model

VENV := .venv
VENV_PYTHON := $(VENV)/bin/python
RELEASE := build/release
# The package of the build tree, before anything of that name that is installed.
RUN_PYTHON := PYTHONPATH=$(CURDIR)/$(RELEASE)/python RT=sardonyx $(VENV_PYTHON)

.PHONY: build demo test test-all cases bench bench-processes bench-start bench-prediction models fuzz conformance style install clean help \
	test-plugins test-clients compare-placement \
	system python python-test python-bench

build: system python ## build the library, the command and the Python module (build/release)
	cmake --preset release -DPython_EXECUTABLE=$(CURDIR)/$(VENV_PYTHON)
	cmake --build --preset release --target product -j $(JOBS)

demo: build ## read the text on a picture with real OCR models
	$(RUN_PYTHON) examples/demo.py

test: system python-test ## build and run all tests; at most 25 minutes on two cores
	$(VENV_PYTHON) tests/run.py

test-all: system python-test ## the tests, the timed ones, all models, and the thread sanitizer
	$(VENV_PYTHON) tests/run.py --all

cases: build python-test ## the tests that measure time and memory; they need a quiet machine
	$(RUN_PYTHON) -m pytest -q -m timed tests/cases

bench: build python-bench ## Sardonyx, ONNX Runtime and OpenVINO side by side on the models
	$(RUN_PYTHON) bench/run.py --models-folder $(MODELS) $(BENCH)

bench-processes: build python-bench ## memory of processes that run one model, side by side
	$(RUN_PYTHON) bench/processes.py $(BENCH)

bench-start: build python-bench ## time from the start of a process to its first output
	cmake --build --preset release --target bench_first_output
	$(RUN_PYTHON) bench/first_output.py $(RELEASE)/bench/bench_first_output --models-folder $(MODELS) $(BENCH)

bench-prediction: build python-bench ## memory that plans predict and that runs take, side by side
	$(RUN_PYTHON) bench/memory_prediction.py --models-folder $(MODELS) $(BENCH)

test-plugins: build python-test ## install vendor plugin libraries and run each; see docs/plugins.md
	cmake --build --preset release --target example_plugin_ep -j $(JOBS)
	$(RUN_PYTHON) tests/plugins/run.py $(PLUGINS)
	$(RUN_PYTHON) tests/plugins/contexts.py

test-clients: build python-test ## run programs of other projects on the library; see docs/clients.md
	$(RUN_PYTHON) tests/clients/run.py --models $(MODELS) $(CLIENTS)

models: python-test ## fetch, export and quantise all test models (torch: about 1 GB of downloads)
	packaging/apt_install.sh packaging/apt.txt packaging/apt-models.txt
	PYTHON=$(PYTHON) tests/models/make_all.sh $(MODELS)

fuzz: system ## fuzz with model bytes, or FUZZ_TARGET=placement|reader|container (FUZZ_SECONDS=600)
	packaging/apt_install.sh packaging/apt-fuzz.txt
	cmake --preset fuzz
	cmake --build --preset fuzz -j $(JOBS)
	fuzz/run.sh build/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGET)

compare-placement: build python-test ## run placement rules on ONNX Runtime and Sardonyx, side by side
	$(RUN_PYTHON) tests/placement/compare_with_onnxruntime.py $(PLACEMENT)

conformance: build python-test ## run the onnx package's backend tests; writes docs/conformance.md
	$(RUN_PYTHON) tests/conformance/run.py --native-types --write

style: python-test ## check formatting and structure
	$(VENV_PYTHON) tools/tidy.py
	$(VENV)/bin/ruff check .
	$(VENV)/bin/ruff format --check .

install: build ## install library, headers, command, CMake package and pkg-config file to PREFIX
	cmake --install $(RELEASE) --prefix $(PREFIX)

clean: ## remove what was built
	rm -rf build

system:
	@packaging/apt_install.sh packaging/apt.txt

python:
	@PYTHON=$(PYTHON) packaging/python_env.sh $(VENV) packaging/requirements.txt

python-test: python
	@packaging/python_env.sh $(VENV) packaging/requirements-test.txt

python-bench: python-test
	@packaging/python_env.sh $(VENV) packaging/requirements-bench.txt

help: ## print this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
