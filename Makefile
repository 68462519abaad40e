# Verbs. `make help` lists them; CMake and Ninja do the work.
JOBS ?= $(shell nproc)
TEST_JOBS ?= 2
PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 10
BUILD := build/release

.DEFAULT_GOAL := build
.PHONY: help deps build test test-long test-tpu test-gpu demo check bench asan ubsan tsan fuzz install clean

help: ## this list
	@sed -n 's/^\([a-z -]*\):[^#]*## */\1\t/p' Makefile | while IFS="$$(printf '\t')" read -r verb text; do \
		printf '  make %-16s %s\n' "$$verb" "$$text"; done

deps: ## installs the packages of tools/deps that are missing
	@tools/deps

build: deps ## builds the library and the program into build/release
	@tools/build release

test: build ## sets up, builds, runs every test not labelled long
	@TEST_JOBS=$(TEST_JOBS) tools/test release

test-long: build ## everything: long tests, checks, sanitizers, fuzzing; hours
	@TEST_JOBS=$(TEST_JOBS) tools/test release --long
	@$(MAKE) --no-print-directory check asan ubsan tsan
	@$(MAKE) --no-print-directory fuzz FUZZ_SECONDS=60

test-tpu: build ## ahead of time for TPUs with libtpu (installs it: 575 MB); tens of minutes
	@tools/test-tpu

test-gpu: build ## through jax-cuda13-pjrt on an NVIDIA GPU; says so where there is none
	@tools/test-gpu

demo: build ## from photographs to an answering server
	@tools/demo

check: deps ## format, warnings with gcc and clang, layering, banned calls, documentation
	@tools/check

bench: build ## benchmarks, with their peers in the same run
	@bench/run

asan ubsan tsan: deps ## the tests under a sanitizer
	@tools/build $@
	@TEST_JOBS=$(TEST_JOBS) tools/test $@

fuzz: deps ## every fuzz target, FUZZ_SECONDS each
	@tools/build fuzz
	@tools/fuzz $(FUZZ_SECONDS)

install: build ## into PREFIX (/usr/local), under DESTDIR
	@cmake -S . -B $(BUILD) -DCMAKE_INSTALL_PREFIX=$(PREFIX) >/dev/null
	@DESTDIR=$(DESTDIR) cmake --install $(BUILD)

clean: ## removes build/
	rm -rf build
