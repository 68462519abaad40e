# Convenience targets around CMake and Ninja; `make help` lists them.
JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 10
BUILD := build/release

.DEFAULT_GOAL := build
.PHONY: help deps build test test-long soak test-tpu test-gpu demo check bench bench-serve asan ubsan tsan fuzz \
	mutants install clean

help: ## show this list
	@sed -n 's/^\([a-z -]*\):[^#]*## */\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r verb text; do \
		printf '  make %-16s %s\n' "$$verb" "$$text"; done

deps: ## install missing packages (listed in tools/deps)
	@tools/deps

build: deps ## build the library and the program in build/release
	@tools/build release

test: build ## run all tests except the long ones
	@TEST_JOBS=$(TEST_JOBS) tools/test release

test-long: build ## run everything: long tests, checks, sanitizers, fuzzing (hours)
	@tools/deps --serving-peers
	@TEST_JOBS=$(TEST_JOBS) tools/test release --long
	@$(MAKE) --no-print-directory check asan ubsan tsan
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=60

soak: build ## the model server under load: swaps, overload, ten thousand connections, floods (minutes)
	@tools/deps --serving-peers
	@ctest --test-dir $(BUILD) -R '^serve::(soak|swaps|floods)::|^cli::soak' --output-on-failure -V | \
		grep -E '^[0-9]+: [^[]|tests (passed|failed)|Failed'

test-tpu: build ## compile for TPUs with libtpu (downloads 575 MB; tens of minutes)
	@tools/test-tpu

test-gpu: build ## train through jax-cuda13-pjrt on an NVIDIA GPU, if there is one
	@tools/test-gpu

demo: build ## build a data set, train, export and serve an example
	@tools/demo

check: deps ## check formatting, warnings (gcc, clang), layering, banned calls, documentation
	@tools/check

bench: build ## run the benchmarks and compare with TensorFlow and JAX
	@bench/run

bench-serve: build ## run the benchmarks of the model server beside gRPC C++ and evhttp
	@tools/deps --serving-peers
	@ONLY=serve bench/run

asan ubsan tsan: deps ## run the tests under a sanitizer
	@tools/build $@
	@TEST_JOBS=$(TEST_JOBS) tools/test $@

fuzz: deps ## run every fuzz target for FUZZ_SECONDS (10)
	@tools/build fuzz
	@tools/fuzz $(FUZZ_SECONDS)

mutants: deps ## change the code in 300 places; list changes that no test detects; MUTANTS="--seed 2 --only ^src/io" (about an hour)
	@python3 tools/mutants $(MUTANTS)

install: build ## install in PREFIX (/usr/local), below DESTDIR if set
	@cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD)

clean: ## remove build/
	rm -rf build
