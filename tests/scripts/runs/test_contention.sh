#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# One processor of two is taken by another process: the program and a program that embeds cleave notice it, their threads
# stop spinning, and a run takes about as long as with threads that never spin. Short runs use one thread, and compute
# the same. What the user sets in the environment stays as it is.
set -u
program=$1
source=$2
bench=$3/tests/bench_contention
work=$(mktemp -d)
taker=
trap '[ -z "$taker" ] || kill "$taker"; rm -rf "$work"' EXIT
cd "$work" || exit 1
unset OMP_WAIT_POLICY GOMP_SPINCOUNT OMP_NUM_THREADS
. "$2/tests/scripts/checks.sh"

# The first two processors that this process may use.
pair=$(awk '/^Cpus_allowed_list/ { n = split($2, part, ","); found = 0
  for (k = 1; k <= n && found < 2; k++) { m = split(part[k], end, "-")
    for (p = end[1]; p <= end[m] && found < 2; p++) { printf "%s%d", found++ ? "," : "", p } } }' /proc/self/status)
case "$pair" in
  *,*) ;;
  *) echo "skipped: one processor, expected two"; exit 77 ;;
esac
[ -r /proc/self/schedstat ] || { echo "skipped: the kernel does not tell how long threads wait"; exit 77; }
command -v taskset >/dev/null || { echo "skipped: taskset is not there"; exit 77; }
[ -x "$bench" ] || { echo "skipped: bench_contention was not built"; exit 77; }
case $("$program" backends) in
  *onednn*) rules=$source/rules/onednn.lua ;;
  *) rules= ;;
esac
model=$source/examples/models/mobilenet_v2.lua
taskset -c "${pair#*,}" sh -c 'while :; do :; done' &
taker=$!

# embed NAME=VALUE [MODEL]: "median sleeps found threads" with this environment.
embed() {
  env "$1" taskset -c "$pair" "$bench" "${2:-$model}" 1 ${rules:+"$rules"} | tee "$out"
}
# run NAME=VALUE: the program's median.
run() {
  env "$1" taskset -c "$pair" "$program" run "$model" ${rules:+--rules "$rules"} --warmup 20 --repeat 40 --json |
    sed -n 's/.*"median_ms": *\([0-9.]*\).*/\1/p' | tee "$out"
}
word() {
  echo "$2" | cut -d' ' -f"$1"
}

found=$(embed X=)
[ "$(word 3 "$found")" = 1 ] && pass || fail "contention was not found"
[ "$(word 4 "$found")" -le 2 ] && pass || fail "more threads than processors"
passive=$(embed OMP_WAIT_POLICY=passive)
[ "$(word 3 "$passive")" = 0 ] && pass || fail "OMP_WAIT_POLICY was set, and yet somebody looked for contention"
spinning=$(embed GOMP_SPINCOUNT=300000)
[ "$(word 3 "$spinning")" = 0 ] && pass || fail "GOMP_SPINCOUNT was set, and yet somebody looked for contention"
if [ -n "$rules" ]; then
  # A thread that has done its part of a product helps the other, and sleeps much less often than with the passive policy,
  # but it sleeps.
  long=$source/examples/models/resnet50.lua
  found=$(embed X= "$long")
  passive=$(embed OMP_WAIT_POLICY=passive "$long")
  awk -v a="$(word 2 "$found")" -v b="$(word 2 "$passive")" 'BEGIN { exit a * 32 < b }' && pass ||
    fail "threads sleep $(word 2 "$found") times a run, with the passive policy $(word 2 "$passive") times"
fi

# Short runs on one thread. The last ones give the same bits as two threads, which the environment's policy keeps.
if [ -n "$rules" ]; then
  OMP_WAIT_POLICY=passive taskset -c "$pair" "$program" run "$model" --set size=64 --rules "$rules" --save alone \
    >"$out" 2>&1
  taskset -c "$pair" "$program" run "$model" --set size=64 --rules "$rules" --requests 600 --threads 2 --data alone \
    --rtol 0 --atol 0 --log information >"$out" 2>&1 && pass || fail "runs on one thread compute other values"
  case "$3" in
    *asan* | *tsan*) ;; # runs are not short there
    *)
      grep -q 'processors are taken: runs use one thread while that is faster' "$out" && pass ||
        fail "short runs do not use one thread: $(tail -1 "$out")"
      ;;
  esac
fi

# The clock of a busy machine: the best of four rounds by turns counts. A sanitizer's program takes too long.
case "$3" in
  *asan* | *tsan*) ;;
  *)
    # Short runs use one thread soon: within some dozen of about 4 ms each.
    if [ -n "$rules" ]; then
      round=0
      while [ $round -lt 20 ] && ! grep -q 'runs use one thread' soon 2>/dev/null; do
        taskset -c "$pair" "$program" run "$model" --set size=160 --rules "$rules" --threads 2 --warmup 0 --repeat 14 --log information \
          >soon 2>&1
        round=$((round + 1))
      done
      grep -q 'runs use one thread' soon && pass || fail "14 runs with a processor taken all use two threads"
    fi
    for way in embed run; do
      best=1000
      round=0
      while [ $round -lt 4 ] && awk -v r="$best" 'BEGIN { exit r <= 1.25 }'; do
        ours=$($way X=)
        theirs=$($way OMP_WAIT_POLICY=passive)
        best=$(awk -v a="${ours%% *}" -v b="${theirs%% *}" -v c="$best" 'BEGIN { r = a / b; print r < c ? r : c }')
        round=$((round + 1))
      done
      awk -v r="$best" 'BEGIN { exit r > 1.25 }' && pass ||
        fail "$way: with a processor taken, a run takes $best times as long as with threads that never spin"
    done
    ;;
esac
finish
