#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# tests/bench/compare: two saved runs side by side, the table in Markdown, refusals; and the numbers of bench_machine.
set -u
root=$2
build=$3
[ -x /usr/bin/python3 ] || { echo "skipped: /usr/bin/python3 is missing"; exit 77; }
compare=$root/tests/bench/compare
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 1
. "$root/tests/scripts/checks.sh"

# run NAME CPU TIME1 TIME2: a saved run of two models; ONNX Runtime takes 10 and 40 ms.
run() {
  ratio1=$(awk "BEGIN { print 10 / $3 }")
  ratio2=$(awk "BEGIN { print 40 / $4 }")
  cat >"$1" <<JSON
{"format": "cleave-compare", "version": 1, "states": ["idle"], "machine": {"cpu": "$2"}, "rows": [
  {"model": "a@17", "threads": 1, "idle": {"cleave_ms": $3, "ort_ms": 10, "ratio": $ratio1}, "bound_ms": 4, "share": 0.5},
  {"model": "b@17", "threads": 1, "idle": {"cleave_ms": $4, "ort_ms": 40, "ratio": $ratio2}}]}
JSON
}
run before.json "A" 8 20
run after.json "A" 4 10
run elsewhere.json "B" 8 20
check "diff" 0 '^a@17  *1 idle  |  *8.00  *4.00  *2.00 |  *1.25  *2.50$' "$compare" --diff before.json after.json
also "geometric mean of the gains" '^geometric mean: 2.000 times as fast, 2 measurements$'
check "backwards" 0 '^geometric mean: 0.500 times as fast' "$compare" --diff after.json before.json
check "other machine" 0 'the machines differ: A, B' "$compare" --diff before.json elsewhere.json
check "markdown" 0 '^| a | 8.0 ms | 1.25 | 50 % |$' "$compare" --markdown before.json
also "a row without a bound" '^| b | 20.0 ms | 2.00 |  |$'
also "the mean of 1.25 and 2" '^| geometric mean |  | 1.58 |  |$'
cat >int8.json <<'JSON'
{"format": "cleave-compare", "version": 1, "states": ["idle"], "machine": {"cpu": "A"}, "rows": [
  {"model": "a@17", "threads": 1, "idle": {"cleave_ms": 4, "ort_ms": 10, "ratio": 2.5, "qdq_ms": 6, "qdq_ratio": 1.5}, "off": 0.0123},
  {"model": "b@17", "threads": 1}]}
JSON
check "8-bit integers have two ratios, and what they are off" 0 '^| a | 4.0 ms | 2.50 | 1.50 | 1.23 % |$' "$compare" --markdown int8.json
also "their titles" '^| model | 1 thread | ratio | QDQ ratio | off |$'
also "a row that failed" '^| b |  |  |  |  |$'
also "means of both ratios" '^| geometric mean |  | 2.50 | 1.50 |  |$'
echo '{"format": "cleave-plan", "version": 1}' >plan.json
echo '{' >broken.json
check "another format" 1 'expected a run that' "$compare" --markdown plan.json
check "broken" 1 'broken.json is not JSON' "$compare" --markdown broken.json
check "missing" 1 'missing.json: No such file' "$compare" --diff missing.json after.json
check "state" 2 "state 'busy' is unknown; expected idle or taken" "$compare" --states busy
check "rounds" 2 'must be at least 1' "$compare" --rounds 0
check "threads" 2 'a list of positive numbers' "$compare" --threads "1 x"

machine=$build/tests/bench_machine
if [ -x "$machine" ]; then
  check "machine" 0 '^{"threads": 1, "vectors": "[-A-Za-z0-9]*", "gflops": [0-9.]*, "read_bytes": 65536, "read_gb_per_s": [0-9.]*}$' \
    "$machine" 1 65536
  check "machine, no bytes" 2 'usage: bench_machine' "$machine" 1 0
fi
finish
