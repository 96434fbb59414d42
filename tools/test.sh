#!/usr/bin/env bash
# Runs every test there is and closes with one count of them all: "N passed, N failed, N skipped".
set -uo pipefail
cd "$(dirname "$0")/.."
results=build/test-results
mkdir -p "$results" && rm -f "$results"/*.xml
failed=0

step() {
  echo "== $*"
  "$@" || { failed=1; echo "test: step failed: $*" >&2; }
}

step tools/setup.sh requirements/build.txt requirements/demo.txt requirements/test.txt
for preset in release asan; do
  step cmake --preset "$preset" -Wno-dev --log-level=WARNING
  step cmake --build --preset "$preset" -- --quiet
  step ctest --preset "$preset" --quiet --output-junit "$PWD/$results/ctest-$preset.xml"
done
step make --no-print-directory build
step .venv/bin/python -m pytest -q --junit-xml "$results/pytest.xml"

.venv/bin/python tools/count_tests.py "$results" || failed=1
exit "$failed"
