#!/usr/bin/env bash
# Every benchmark, one after the other; each prints ratios against the peer on the same input in the same run, with sizes or errors beside.
#   tools/bench.sh [NAME …]   e.g. tools/bench.sh codec pack
set -euo pipefail
cd "$(dirname "$0")/.."
all=(codec encoders pack pack_files squeeze plan simulate fold fold_onnx quantize_weights)
names=("$@")
[ ${#names[@]} -gt 0 ] || names=("${all[@]}")
for name in "${names[@]}"; do
  echo "== $name"
  .venv/bin/python "bench/$name.py"
done
