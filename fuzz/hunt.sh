#!/bin/sh
# hunt.sh FUZZ_ROWS KERNEL SECONDS: succeed if the fuzzer breaks KERNEL from an empty corpus in time.
set -eu
program=$1 kernel=$2 seconds=$3

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
ASSAY_FUZZ_KERNEL=$kernel "$program" -max_total_time="$seconds" -max_len=4096 -seed=1 \
    -artifact_prefix="$scratch/" >"$scratch/log" 2>&1 || status=$?
grep -A 6 "^$kernel: FAIL: " "$scratch/log" || {
    tail -n 30 "$scratch/log"
    echo "no failing input of $kernel within $seconds s (exit $status)"
    exit 1
}
