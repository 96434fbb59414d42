# Two commands do everything on a fresh machine: `make demo` and `make test`. Everything else is a part of them.
.PHONY: setup build demo test test-cpp test-python test-asan bench fuzz clean
SHELL := /bin/bash
export WEIGHTMILL_COMPILER_LAUNCHER ?= ccache
# Paths count from the checkout, so that the build trees of tests and package share compiled objects.
export CCACHE_BASEDIR ?= $(CURDIR)
export CCACHE_NOHASHDIR ?= 1

setup:
	tools/setup.sh requirements/build.txt

# Leaves the program at .venv/bin/weightmill and the importable package in .venv.
build: setup
	.venv/bin/pip install --quiet --disable-pip-version-check --no-build-isolation --no-deps .

demo: build
	tools/setup.sh requirements/build.txt requirements/demo.txt
	tools/demo.sh

# Everything: C++ tests, the same under sanitizers with the fuzz corpus, Python tests with the real engines as judges.
test:
	tools/test.sh

test-cpp: setup
	cmake --preset release && cmake --build --preset release && ctest --preset release

test-asan: setup
	cmake --preset asan && cmake --build --preset asan && ctest --preset asan

test-python: build
	tools/setup.sh requirements/build.txt requirements/demo.txt requirements/test.txt
	.venv/bin/python -m pytest

bench: build
	tools/setup.sh requirements/build.txt requirements/demo.txt requirements/test.txt
	tools/bench.sh

# FUZZ_SECONDS for each target.
fuzz: setup
	tools/fuzz.sh $(FUZZ_SECONDS)

clean:
	rm -rf build out
