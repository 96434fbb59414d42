#!/usr/bin/env bash
# Runs every fuzz target for SECONDS each (default 600) with AddressSanitizer and UndefinedBehaviorSanitizer, two at a time.
# Corpora grow in fuzz/corpus/ (not in git); findings stop the run and stay in build/fuzz-findings/.
#   tools/fuzz.sh [SECONDS] [TARGET …]
set -euo pipefail
cd "$(dirname "$0")/.."
seconds=${1:-600}
shift || true
cmake --preset fuzz -Wno-dev --log-level=WARNING
cmake --build --preset fuzz
mkdir -p build/fuzz-findings build/fuzz-logs

all_targets() { find build/fuzz/fuzz -maxdepth 1 -name 'fuzz_*' -type f -executable -printf '%f\n' | sed 's/^fuzz_//' | sort; }

run_target() {
  local target=$1 seconds=$2 seeds=fuzz/seeds/$1
  mkdir -p "fuzz/corpus/$target" "$seeds"
  # -timeout: no input may take longer than ten seconds; -rss_limit_mb: nor more than a gigabyte.
  if build/fuzz/fuzz/fuzz_"$target" "fuzz/corpus/$target" "$seeds" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=1024 \
      -artifact_prefix="build/fuzz-findings/$target-" -print_final_stats=1 -verbosity=0 >"build/fuzz-logs/$target.log" 2>&1; then
    echo "fuzz: $target: $(grep -o 'number_of_executed_units: .*' "build/fuzz-logs/$target.log" | grep -o '[0-9]*') inputs in $seconds s, no finding"
  else
    echo "fuzz: $target: FINDING, see build/fuzz-logs/$target.log" >&2
    return 1
  fi
}
export -f run_target

targets=("$@")
[ ${#targets[@]} -gt 0 ] || mapfile -t targets < <(all_targets)
printf '%s\n' "${targets[@]}" | xargs -P 2 -I{} bash -c 'run_target {} '"$seconds"
