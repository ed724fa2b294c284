# Each target sets up what it needs: `make demo` and `make test` need Python 3.11 and nothing else.
SHELL := bash
.SHELLFLAGS := -eu -o pipefail -c
.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules --no-print-directory

PYTHON ?= python3
NATIVE_CC ?= gcc
SUDO := $(if $(filter 0,$(shell id -u)),,sudo)

# The most that the shipped binary may weigh, in bytes.
BUDGET := 2097152
# All that the shipped binary may ask of its host.
IMPORTS := env.memory env.pg_host

.PHONY: help
help:
	@echo 'make demo    train on handwritten digits, pictures in build/demo'
	@echo 'make test    all tests but those that compare with PyTorch'
	@echo 'make parity  the tests that compare with PyTorch (installs it in .venv-parity)'
	@echo 'make accuracy  errors of maths functions beside those of PyTorch'
	@echo 'make fuzz    10,000 damaged files'
	@echo 'make layouts  every op over every layout of its operands'
	@echo 'make contract  27,000 writes to saved tensors'
	@echo 'make points  derivatives of every op, to the third, at zeros, ties, cuts and bounds'
	@echo 'make polls     how far apart the points are at which each op can be interrupted'
	@echo 'make coverage  lines of library, nested, fx and dispatch that tests run'
	@echo 'make mutants  small errors in copies of the program, each of which a test must find'
	@echo 'make check   format, lint, types, C warnings, layers'
	@echo 'make format  Python and C in the form that make check asks for'
	@echo 'make wasm    build pygrad/core.wasm from wasm_core (installs emscripten)'
	@echo 'make stubs   write type stubs and TypeScript declarations from the op table'
	@echo 'make names   write what PyTorch has under which name, of the one of make parity'
	@echo 'make repro   build it twice elsewhere and compare with the shipped one'
	@echo 'make native  the C tests, natively, under sanitizers'
	@echo 'make guarded  sweeps over all ops with guarded memory'
	@echo 'make size    bytes, lines and longest functions, against the budget'
	@echo 'make web     the demo page, on 127.0.0.1 (PORT=9000: at that port)'
	@echo 'make web-test  the JavaScript front under Node, its types and package, the page in browsers'
	@echo 'make wheel   the Python package and its source, in dist'
	@echo 'make npm     the npm package of the JavaScript front, in build'
	@echo 'make types   its TypeScript declarations, checked'
	@echo 'make bits    the hashes of fixed runs and of all ops, on every host and as recorded'
	@echo 'make bench   speed'
	@echo 'make clients  programs of packages that use torch, under torch and under pygrad (installs 2 GB)'
	@echo 'make mpi-demo  digits on two processes (RANKS=4: on four) over an MPI that it installs'
	@echo 'make scale   programs of several processes, over MPI and Ray (installs 0.8 GB)'
	@echo 'make ci      all of it'

# Python: one environment for the demo and the tests, one more with PyTorch for the comparisons.

VENV := .venv
PARITY_VENV := .venv-parity
CLIENTS_VENV := .venv-clients
SCALE_VENV := .venv-scale

$(addsuffix /bin/python,$(VENV) $(PARITY_VENV) $(CLIENTS_VENV) $(SCALE_VENV)):
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo 'pygrad needs Python 3.11 or newer: make PYTHON=python3.11 ...' >&2; exit 1; }
	$(PYTHON) -m venv $(@:/bin/python=)

install = $(1)/bin/python -m pip install --quiet --disable-pip-version-check
# As pip does with a package that it copies: else every start compiles, where Python may not write.
compile = $(1)/bin/python -m compileall -q pygrad

$(VENV)/.demo: pyproject.toml | $(VENV)/bin/python
	$(call install,$(VENV)) --editable '.[demo]'
	$(call compile,$(VENV))
	@touch $@

$(VENV)/.dev: pyproject.toml | $(VENV)/bin/python
	$(call install,$(VENV)) --editable '.[demo,dev]'
	$(call compile,$(VENV))
	@touch $@ $(VENV)/.demo

$(PARITY_VENV)/.parity: pyproject.toml | $(PARITY_VENV)/bin/python
	$(call install,$(PARITY_VENV)) --editable '.[demo,dev]' torch==2.13.0
	$(call compile,$(PARITY_VENV))
	@touch $@

.PHONY: demo test parity accuracy wheel stubs names bench fuzz layouts contract points
demo: $(VENV)/.demo
	$(VENV)/bin/python -m pygrad.demo --out build/demo

test: $(VENV)/.dev
	$(VENV)/bin/python -m pytest -n 2 --ignore=tests/parity --ignore=tests/scale $(PYTEST_ARGS)

parity: $(PARITY_VENV)/.parity
	@$(PARITY_VENV)/bin/python -c 'import torch; print("torch", torch.__version__)'
	$(PARITY_VENV)/bin/python -m pytest -n 2 tests/parity $(PYTEST_ARGS)

# The errors of maths functions beside PyTorch's, by mpmath.
$(PARITY_VENV)/.accuracy: $(PARITY_VENV)/.parity
	$(call install,$(@D)) --editable '.[accuracy]'
	@touch $@

accuracy: $(PARITY_VENV)/.accuracy
	$(PARITY_VENV)/bin/python tests/accuracy/table.py

# `make test` has a part of these, as of those below.
contract: $(VENV)/.dev
	PYGRAD_CONTRACT_SHARE=1 $(VENV)/bin/python -m pytest -n 2 tests/test_mutation_contract.py

fuzz: $(VENV)/.dev
	PYGRAD_FUZZED_FILES=10000 $(VENV)/bin/python -m pytest -n 2 tests/test_files.py -k damaged_file

# `make test` has one of them for some samples of each op.
layouts: $(VENV)/.dev
	PYGRAD_ALL_LAYOUTS=1 $(VENV)/bin/python -m pytest -n 2 tests/test_representations.py

# `make test` has the first sample of each op, at two kinds of points.
points: $(VENV)/.dev
	PYGRAD_EVERY_POINT=1 $(VENV)/bin/python -m pytest -n 2 tests/test_complex_derivatives.py tests/test_singularities.py
	PYGRAD_EVERY_POINT=1 $(VENV)/bin/python -m pytest -n 2 tests/test_forward.py -k 'derivatives or special'

wheel: $(VENV)/.dev
	@$(VENV)/bin/python -m hatchling build -d dist

stubs: $(VENV)/.dev
	PYTHONPATH=wasm_core $(VENV)/bin/python -m fronts.stubs

names: $(PARITY_VENV)/.parity
	$(PARITY_VENV)/bin/python -W ignore tests/parity/names.py pygrad/torch/names.txt

# Beside PyTorch where `make parity` has installed it. The table of web/docs/speed.md and its picture are written by
# make bench BENCH_ARGS='--table web/docs/speed.md --roofline tests/bench/roofline.png'
BENCH_VENV = $(if $(wildcard $(PARITY_VENV)/.parity),$(PARITY_VENV),$(VENV))

$(VENV)/.bench: $(VENV)/.dev
$(PARITY_VENV)/.bench: $(PARITY_VENV)/.parity
$(VENV)/.bench $(PARITY_VENV)/.bench:
	$(call install,$(@D)) --editable '.[bench]'
	@touch $@

bench: $(VENV)/.dev
	@$(MAKE) $(BENCH_VENV)/.bench
	$(BENCH_VENV)/bin/python tests/bench/run.py --roofline build/bench/roofline.png $(BENCH_ARGS)

# Packages that use torch, in an environment of their own: each as pinned, without asking what else it wants, which would
# be another torch.
$(CLIENTS_VENV)/.clients: tests/clients/packages.txt | $(CLIENTS_VENV)/bin/python
	$(call install,$(@D)) torch==2.13.0
	$(call install,$(@D)) --no-deps --requirement $<
	$(call install,$(@D)) --editable .
	@touch $@

.PHONY: clients
clients: $(CLIENTS_VENV)/.clients
	$(CLIENTS_VENV)/bin/python tests/clients/run.py $(CLIENTS_ARGS)

# Programs of several processes, with an MPI and a Ray of their own.
$(SCALE_VENV)/.scale: pyproject.toml | $(SCALE_VENV)/bin/python
	$(call install,$(SCALE_VENV)) --editable '.[demo,dev,mpi,ray]'
	$(call compile,$(SCALE_VENV))
	@touch $@ $(SCALE_VENV)/.mpi

.PHONY: scale mpi-demo
scale: $(SCALE_VENV)/.scale
	$(SCALE_VENV)/bin/python -m pytest tests/scale $(PYTEST_ARGS)

$(SCALE_VENV)/.mpi: pyproject.toml | $(SCALE_VENV)/bin/python
	$(call install,$(SCALE_VENV)) --editable '.[demo,mpi]'
	$(call compile,$(SCALE_VENV))
	@touch $@

RANKS ?= 2
mpi-demo: $(SCALE_VENV)/.mpi
	$(SCALE_VENV)/bin/mpiexec -n $(RANKS) $(SCALE_VENV)/bin/python tests/scale/programs/digits_mlp.py

# The engine. Relative paths and sorted lists throughout: the same sources give the same bytes in
# any folder. NDEBUG, because a failed assertion would import a way to print and exit.

DEPTHS := * */* */*/*
SOURCES := $(sort $(wildcard $(DEPTHS:%=wasm_core/%.c)))
INPUTS := $(sort $(wildcard $(foreach e,c h def,$(DEPTHS:%=wasm_core/%.$(e)))))
OBJECTS := $(SOURCES:wasm_core/%.c=build/wasm/%.o)

WARNINGS := -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Werror
ARITHMETIC := -ffp-contract=off -fno-math-errno -fwrapv
WASM_CFLAGS := -std=c11 -msimd128 $(ARITHMETIC) -DNDEBUG -Iwasm_core -Ibuild/declared
# Files whose loops people wait for are built for speed (-O3 where it is faster than -O2), all others for size. A jump
# table lies in the code, from where wasmtime reads it at the cost of some nanoseconds; comparisons take less.
FASTEST := elementwise index_places reduce
FAST := adam api apply arithmetic bind bytes call casts conv_maps copy dropout effort elements fft gemm gradients \
  history hooks iter lists loss matmul memory node normalization partial pooling record resample rng run scan \
  schema sgd softmax sort tensor transcendental view walk
level = $(if $(filter $(1),$(FASTEST)),-O3 $(LEAN),$(if $(filter $(1),$(FAST)),-O2 $(LEAN),-Oz))
LEAN := -fno-unroll-loops -fno-jump-tables
OPTIMIZE = $(call level,$(notdir $(basename $<)))
# The stack comes first in memory, so that overflowing it traps rather than overwrites data. Functions that differ in
# constants alone are made one: rows mostly, and loops of rare functions.
WASM_LDFLAGS := -Os -msimd128 -sSTANDALONE_WASM --no-entry -sIMPORTED_MEMORY=1 -sBINARYEN_EXTRA_PASSES=merge-similar-functions \
  -sALLOW_MEMORY_GROWTH=1 -sINITIAL_MEMORY=16MB -sMAXIMUM_MEMORY=4GB -sTOTAL_STACK=1MB \
  -sERROR_ON_UNDEFINED_SYMBOLS=0 -sWARN_ON_UNDEFINED_SYMBOLS=0 -Wl,--stack-first

apt_install = { $(SUDO) apt-get update -qq && \
  $(SUDO) env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends $(1); }

.PHONY: need-emcc need-native-cc need-node
need-emcc:
	@command -v emcc >/dev/null || $(call apt_install,emscripten)

need-native-cc:
	@command -v $(NATIVE_CC) >/dev/null || $(call apt_install,gcc libc6-dev)

.PHONY: wasm wasm-build repro size FORCE
wasm: wasm-build
	@for file in core.wasm core.build.txt; do \
	  cmp -s "build/wasm/$$file" "pygrad/$$file" || \
	    { cp "build/wasm/$$file" "build/wasm/$$file.new" && mkdir -p pygrad && \
	      mv "build/wasm/$$file.new" "pygrad/$$file" && echo "wasm: new pygrad/$$file"; }; \
	done
	@if [ -e pyproject.toml ]; then $(PYTHON) wasm_core/sbom.py > wasm_core/sbom.cdx.json; fi

wasm-build: need-emcc
	@$(MAKE) -j2 build/wasm/core.wasm

# Looked at with every change of the ops, but other files only when what they declare is another.
DECLARED := build/declared/made
$(DECLARED): $(filter %.def %.h wasm_core/ops/%,$(INPUTS)) wasm_core/declare.py
	@mkdir -p $(@D)
	@$(PYTHON) wasm_core/declare.py $(@D)
	@touch $@

build/wasm/%.o: wasm_core/%.c Makefile | $(DECLARED)
	@mkdir -p $(@D)
	emcc $(WASM_CFLAGS) $(OPTIMIZE) $(WARNINGS) -ffile-prefix-map=$(CURDIR)=. -MMD -MP -c $< -o $@

# Newer whenever a file came or went, which no time stamp of the others would tell.
build/wasm/inputs: FORCE
	@mkdir -p $(@D)
	@echo '$(INPUTS)' | cmp -s - $@ || echo '$(INPUTS)' > $@

build/wasm/core.wasm: $(OBJECTS) $(INPUTS) build/wasm/inputs wasm_core/report.py Makefile
	emcc $(WASM_LDFLAGS) $(OBJECTS) -o $@
	@$(PYTHON) wasm_core/report.py record --imports='$(IMPORTS)' --cflags='$(WASM_CFLAGS)' \
	  --ldflags='$(WASM_LDFLAGS)' $@ $(INPUTS) > $(@:.wasm=.build.txt)

# Built twice, in folders that have nothing in common.
repro: need-emcc
	@rm -rf build/repro && mkdir -p build/repro
	@elsewhere=$$(mktemp -d); trap 'rm -rf "$$elsewhere"' EXIT; \
	for folder in build/repro "$$elsewhere"; do \
	  cp -R Makefile wasm_core "$$folder" && $(MAKE) -C "$$folder" wasm >/dev/null && \
	  for file in core.wasm core.build.txt; do \
	    cmp "$$folder/pygrad/$$file" "pygrad/$$file" || \
	      { echo "repro: pygrad/$$file is not what wasm_core gives: run make wasm" >&2; exit 1; }; \
	  done; \
	done
	@echo 'repro: pygrad/core.wasm is what wasm_core gives, built twice'

size: wasm-build
	@$(PYTHON) wasm_core/report.py size --budget=$(BUDGET) pygrad/core.wasm $(INPUTS)

# The engine with guarded memory (see memory.c), under the tests that give every op all that it may
# be given: what has written past a block, or reads one that was freed, traps or gives nonsense.

GUARDED_TESTS := hostile hostile_bytes ops gradients gradcheck errors autograd forward function indexing nn profiler snapshots vmap
.PHONY: guarded
guarded: $(VENV)/.dev wasm-build
	@mkdir -p build/guarded && cp -R pygrad build/guarded
	emcc $(WASM_CFLAGS) -O2 $(WARNINGS) -DPG_GUARDED -c wasm_core/ground/memory.c -o build/guarded/memory.o
	emcc $(WASM_LDFLAGS) $(filter-out %/memory.o,$(OBJECTS)) build/guarded/memory.o -o build/guarded/pygrad/core.wasm
	cd build/guarded && $(abspath $(VENV))/bin/python -m pytest -n 2 $(GUARDED_TESTS:%=$(CURDIR)/tests/test_%.py)

.PHONY: polls
polls: $(VENV)/.dev
	$(VENV)/bin/python tests/polls/gaps.py

# By the tests of those parts alone.
$(VENV)/.coverage: $(VENV)/.dev
	$(call install,$(VENV)) --editable '.[coverage]'
	@touch $@

.PHONY: coverage
coverage: $(VENV)/.coverage
	$(VENV)/bin/python tests/covered/table.py $(COVERAGE_ARGS)

# Small errors, tried one at a time in copies of the program (tests/mutants). An engine is linked for each that is in C,
# so with little optimization.
.PHONY: mutants
mutants: $(VENV)/.dev wasm-build
	$(VENV)/bin/python tests/mutants/run.py --ldflags='$(WASM_LDFLAGS:-Os=-O1)' $(MUTANTS_ARGS)

# The same C for this machine, with the sanitizers; each tests/core/*.c is a program with its own main.

NATIVE_CFLAGS := -std=c11 -g -O1 $(ARITHMETIC) -fsanitize=address,undefined \
  -fno-sanitize-recover=all -fno-omit-frame-pointer -DPG_CHECK_MEMORY -Iwasm_core -Ibuild/declared
NATIVE_OBJECTS := $(SOURCES:wasm_core/%.c=build/native/%.o)
C_TESTS := $(patsubst tests/core/%.c,build/native/tests/%,$(sort $(wildcard tests/core/*.c)))

build/native/%.o: wasm_core/%.c Makefile | $(DECLARED)
	@mkdir -p $(@D)
	$(NATIVE_CC) $(NATIVE_CFLAGS) $(WARNINGS) -MMD -MP -c $< -o $@

build/native/tests/%: tests/core/%.c $(NATIVE_OBJECTS) Makefile | $(DECLARED)
	@mkdir -p $(@D)
	$(NATIVE_CC) $(NATIVE_CFLAGS) $(WARNINGS) -MMD -MP -MF $@.d $< $(NATIVE_OBJECTS) -lm -o $@

.PHONY: native native-tests
native-tests: $(C_TESTS)

native: need-native-cc
	@$(if $(C_TESTS),,echo 'native: no tests in tests/core' >&2; exit 1)
	@$(MAKE) -j2 native-tests
	@for program in $(C_TESTS); do \
	  echo "$$program"; \
	  UBSAN_OPTIONS=print_stacktrace=1 "$$program" || { echo "native: $$program failed" >&2; exit 1; }; \
	done
	@echo 'native: $(words $(C_TESTS)) programs passed under ASan and UBSan'

-include $(OBJECTS:.o=.d) $(NATIVE_OBJECTS:.o=.d) $(C_TESTS:=.d)

# The page, and the same bits on every host.

.PHONY: web web-test bits need-browsers npm types
web:
	@$(PYTHON) web/serve.py

need-node:
	@command -v node >/dev/null || $(call apt_install,nodejs)

# Newer ones cannot drive Debian's Firefox: see tests/web/conftest.py.
$(VENV)/.web: $(VENV)/.dev Makefile
	$(call install,$(VENV)) 'playwright>=1.58,<1.62'
	@touch $@

need-browsers:
	@for name in chromium firefox-esr; do \
	  command -v "$$name" >/dev/null || $(call apt_install,"$$name") || \
	    echo "$$name could not be installed: what needs it is skipped" >&2; \
	done

# Types and package need tools from npm; without it or its registry they are skipped, and say so.
NODE_TOOLS := prettier@3.8.3 typescript@5.9.3 esbuild@0.28.2 vite@7.3.8 vite8@npm:vite@8.3.8

build/node/.tools: Makefile | need-node
	@mkdir -p $(@D)
	@npm install --prefix $(@D) --no-save --no-package-lock --ignore-scripts --no-audit --no-fund --prefer-offline \
	  --silent $(NODE_TOOLS) >/dev/null 2>&1 && touch $@ || echo 'npm could not install $(NODE_TOOLS)' >&2

with_tools = if [ -e build/node/.tools ]; then $(1); else echo '$@: skipped'; fi

npm: build/node/.tools
	@$(call with_tools,node web/npm/assemble.mjs build/npm && rm -f build/pygrad-*.tgz && \
	  cd build/npm && npm pack --silent --pack-destination ..)

types: npm
	@$(call with_tools,build/node/node_modules/.bin/tsc -p tests/web/types && \
	  echo 'types: sample.ts passes and every line of wrong.ts fails')

# Without a browser the tests of the page are skipped, and say so.
web-test: need-node need-browsers types $(VENV)/.web
	node --test tests/web/
	$(VENV)/bin/python -m pytest -n 2 tests/web

bits: need-node need-browsers $(VENV)/.dev
	$(VENV)/bin/python tests/bits/table.py

# What a change must hold to.

C_FILES := $(sort $(filter %.c %.h,$(INPUTS)) $(wildcard tests/core/*.[ch]))

PRETTIER := build/node/node_modules/.bin/prettier
JS_FILES := 'web/**/*.{js,mjs}' 'tests/**/*.{js,mjs}'

.PHONY: format check check-python check-c check-js
format: $(VENV)/.dev build/node/.tools
	$(VENV)/bin/ruff format .
	@$(VENV)/bin/clang-format -i $(C_FILES)
	@echo 'format: $(words $(C_FILES)) files of C'
	@$(call with_tools,$(PRETTIER) --write --log-level warn $(JS_FILES))

check: check-python check-c check-js
	$(VENV)/bin/python -m pytest tests/test_layers.py

check-python: $(VENV)/.dev
	$(VENV)/bin/ruff format --check .
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy

check-js: build/node/.tools
	@$(call with_tools,$(PRETTIER) --check --log-level warn $(JS_FILES) && \
	  echo 'check-js: every file in the common form')

check-c: need-native-cc $(VENV)/.dev $(DECLARED)
	@$(VENV)/bin/clang-format --dry-run -Werror $(C_FILES)
	@echo 'check-c: $(words $(C_FILES)) files in the common form'
	@for source in $(SOURCES); do \
	  $(NATIVE_CC) -fsyntax-only -std=c11 -O1 $(ARITHMETIC) $(WARNINGS) -Iwasm_core -Ibuild/declared "$$source"; \
	  ! command -v emcc >/dev/null || emcc -fsyntax-only $(WASM_CFLAGS) $(WARNINGS) "$$source"; \
	done
	@echo 'check-c: $(words $(SOURCES)) files without a warning'

.PHONY: ci ci-beyond-test clean
ci: test
	@$(MAKE) ci-beyond-test

ci-beyond-test:
	@for target in check coverage parity accuracy fuzz layouts contract points polls native guarded repro size demo bits web-test bench scale; do \
	  echo "== make $$target"; $(MAKE) "$$target"; \
	done

clean:
	rm -rf build
