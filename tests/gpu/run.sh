#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# The CUDA backend on a machine with an NVIDIA GPU: builds, compares everything with cpu, then measures. It needs gcc, CMake and
# the driver with NVRTC (the toolkit brings it), and Lua 5.4 and jansson, which may lie in a folder of their own: include and lib,
# or what `dpkg -x` makes of Debian's packages of them.
# OpenBLAS is used where it is; without it cpu multiplies by plain loops, and large models take it minutes.
#
#   sh tests/gpu/run.sh [--deps DIR] [--build DIR] [--logs DIR] [--limit SECONDS] [--quick]
#                        [--no-build] [--no-tests] [--no-bench]
#
# --no-build takes what lies in the build's folder. Tests run side by side, on all processors; what is measured then runs alone.
set -u
source=$(cd "$(dirname "$0")/../.." && pwd)
build=$source/build/gpu
deps=
logs=
quick=
builds=1
tests=1
bench=1
limit=600 # seconds for one test
while [ $# -gt 0 ]; do
  case $1 in
    --deps) deps=$2; shift ;;
    --build) build=$2; shift ;;
    --logs) logs=$2; shift ;;
    --limit) limit=$2; shift ;;
    --quick) quick=--quick ;;
    --no-build) builds= ;;
    --no-tests) tests= ;;
    --no-bench) bench= ;;
    *) echo "usage: $0 [--deps DIR] [--build DIR] [--logs DIR] [--limit SECONDS] [--quick] [--no-build] [--no-tests] [--no-bench]"; exit 2 ;;
  esac
  shift
done
if [ -z "${CLEAVE_CUDA_PATH:-}" ] && ! nvidia-smi -L 2>/dev/null | grep -q GPU; then
  echo "skipped: no NVIDIA GPU (nvidia-smi -L lists none)"
  exit 77
fi
if [ -n "$deps" ]; then
  deps=$(cd "$deps" && pwd)
  for folder in "$deps" "$deps/usr"; do
    CMAKE_PREFIX_PATH=$folder:${CMAKE_PREFIX_PATH:-}
    for libraries in "$folder/lib" "$folder"/lib/*-linux-gnu "$folder"/lib/*-linux-gnu/openblas-pthread; do
      [ ! -d "$libraries" ] || LD_LIBRARY_PATH=$libraries:${LD_LIBRARY_PATH:-}
      [ ! -d "$libraries" ] || CMAKE_LIBRARY_PATH=$libraries:${CMAKE_LIBRARY_PATH:-}
    done
    for headers in "$folder"/include/*-linux-gnu; do
      [ ! -d "$headers" ] || CPATH=$headers:${CPATH:-}
    done
  done
  export LD_LIBRARY_PATH CMAKE_PREFIX_PATH CMAKE_LIBRARY_PATH CPATH
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
started=$(date +%s)
say() {
  echo "== $* ($(($(date +%s) - started)) s)"
}

# What the compiler says of the first errors, or the end of a log that has none.
explain_build() {
  grep -i -A 8 "error" "$work/log" | head -n 60 | grep . || tail -n 30 "$work/log"
  exit 1
}
if [ -n "$builds" ]; then
  say "building in $build"
  cmake -S "$source" -B "$build" -DCMAKE_BUILD_TYPE=Release -DCLEAVE_TESTS=OFF -DCLEAVE_GPU_TESTS=ON -DCLEAVE_ONEDNN=OFF \
    ${deps:+-DCMAKE_DISABLE_FIND_PACKAGE_PkgConfig=ON} -DCLEAVE_OPENBLAS=AUTO -DCLEAVE_EDITLINE=OFF \
    -DCLEAVE_XNNPACK=OFF -DCLEAVE_MPI=OFF >"$work/log" 2>&1 &&
    cmake --build "$build" -j "$(nproc)" >>"$work/log" 2>&1 || explain_build
fi
program=$build/cleave
sweep=$build/tests/gpu/gpu_sweep
models=$source/examples/models

say "what is there"
"$program" backends cuda || exit 1
small="$models/gru_residual.lua --rules $source/rules/cuda.lua --verify --repeat 1"
# shellcheck disable=SC2086
"$program" run $small >"$work/log" 2>&1 || { echo "a first, small model failed:"; tail -n 30 "$work/log"; exit 1; }

passed=0
failed=0
count=0
# start NAME COMMAND...: in the background; `finish` reports it.
start() {
  count=$((count + 1))
  echo "$1" >"$work/$count.name"
  shift
  { "$@" >"$work/$count.out" 2>&1; echo $? >"$work/$count.status"; } &
}
# What has been started, in that order: its last line, or what it printed.
finish() {
  wait
  for k in $(seq "$count"); do
    [ -z "$logs" ] || cp "$work/$k.out" "$logs/$(tr -c 'a-z0-9\n' _ <"$work/$k.name").log"
    if [ "$(cat "$work/$k.status")" -eq 0 ]; then
      passed=$((passed + 1))
      echo "ok      $(cat "$work/$k.name"): $(tail -n 1 "$work/$k.out" | cut -c 1-140)"
    else
      failed=$((failed + 1))
      echo "FAILED  $(cat "$work/$k.name")"
      tail -n 40 "$work/$k.out" | sed 's/^/    /'
    fi
  done
}
verified() {
  timeout "$limit" "$program" run "$@" --rules "$source/rules/cuda.lua" --verify --repeat 3 && echo "equal to cpu"
}
# More than 2^31 elements; the GPU needs 7 GB, the host 7 more.
large() {
  cat >"$work/large.lua" <<'LUA'
local x = g.input("x", "uint8", { 65537, 32769 })
g.output("y", g.Max(x + 1, g.constant(3, "uint8")))
LUA
  timeout "$limit" "$program" run "$work/large.lua" --backend cuda --verify --repeat 1
}
# sweep_shares OPTIONS...: all cases, shared by as many processes as there are processors; failures, and a line per subject.
sweep_shares() {
  shares=$(nproc)
  folder=$(mktemp -d "$work/sweep.XXXXXX")
  for k in $(seq "$shares"); do
    { timeout "$limit" "$sweep" --backend cuda --every "$shares" --from "$k" "$@" >"$folder/$k" 2>&1 || echo "failed with status $?" >>"$folder/$k"; } &
  done
  wait
  awk '
    / cases, / {
      subject = $1; cases[subject] += $2; refused[subject] += $4; fell[subject] += $6; failed[subject] += $9
      worst[subject] = $13 > worst[subject] ? $13 : worst[subject]
      next
    }
    /^FAILED/ { failures++ }
    /^failed with status/ { ended++ }
    { print }
    END {
      for (subject in cases) {
        printf "%-12s %6d cases, %d refused, %d fell back, %d failed; at worst %.2f of the tolerance\n", subject, cases[subject],
          refused[subject], fell[subject], failed[subject], worst[subject]
        all += cases[subject]
      }
      printf "%d cases, %d failures, %d of the processes failed\n", all, failures, ended
      exit ended > 0
    }' "$folder"/*
}

if [ -n "$tests" ]; then
  say "against cpu"
  cache=${CLEAVE_CUDA_CACHE:-}
  CLEAVE_CUDA_CACHE=$work/cache
  export CLEAVE_CUDA_CACHE
  if [ -z "$quick" ]; then
    start "sweep" sweep_shares
    start "sweep with gradients" sweep_shares --gradients fusion window
  else
    start "sweep" sweep_shares product movement
  fi
  start "a recurrent cell" verified "$models/gru_residual.lua"
  start "a transformer, one layer" verified "$models/bert_base.lua" --set layers=1 --set T=16 --set vocabulary=64
  start "mobilenet, small images" verified "$models/mobilenet_v2.lua" --set size=32
  start "mobilenet of float16" verified "$models/mobilenet_v2.lua" --set size=32 --set precision=float16 --rtol 0.01 --atol 0.01
  start "a transformer in bfloat16" verified "$models/bert_base.lua" --set layers=1 --set T=16 --set vocabulary=64 \
    --set precision=bfloat16 --rtol 0.05 --atol 0.05
  start "the tests of the rules" "$program" check "$source/rules/cuda.lua"
  if [ -z "$quick" ]; then
    for name in bert_base resnet50 mobilenet_v2 unet; do
      start "$name" verified "$models/$name.lua"
    done
    start "resnet50 of tf32" verified "$models/resnet50.lua" --set precision=tf32 --rtol 0.01 --atol 0.01
    start "resnet50 of float16" verified "$models/resnet50.lua" --set precision=float16 --rtol 0.05 --atol 0.05
    start "more than 2^31 elements" large
  fi
  if command -v compute-sanitizer >/dev/null; then
    [ -n "$quick" ] || start "compute-sanitizer, one case in 97" timeout "$limit" compute-sanitizer --error-exitcode 9 "$sweep" --backend cuda --every 97
    # shellcheck disable=SC2086
    start "compute-sanitizer" compute-sanitizer --error-exitcode 9 "$program" run $small
    start "compute-sanitizer, races" compute-sanitizer --tool racecheck --error-exitcode 9 "$program" run \
      "$models/bert_base.lua" --set layers=1 --set T=16 --set vocabulary=64 --rules "$source/rules/cuda.lua" --repeat 1
    [ -n "$quick" ] || start "compute-sanitizer, races of TopK" timeout "$limit" compute-sanitizer --tool racecheck --error-exitcode 9 \
      "$sweep" --backend cuda --every 31 selection
  else
    echo "skipped: compute-sanitizer is not installed"
  fi
  finish
  CLEAVE_CUDA_CACHE=$cache
  [ -n "$cache" ] || unset CLEAVE_CUDA_CACHE
fi

# measured FOLDER MODEL [OPTIONS]: milliseconds to compile and of a run, with what the folder keeps.
measured() {
  CLEAVE_CUDA_CACHE=$work/$1
  export CLEAVE_CUDA_CACHE
  shift
  "$program" run "$@" --rules "$source/rules/cuda.lua" --repeat 20 --json 2>/dev/null | awk -F '[:,]' '
    /^  "compile_ms"/ { compile = $2 } /^  "median_ms"/ { median = $2 } END { printf "%9.1f %9.3f", compile, median }'
  unset CLEAVE_CUDA_CACHE
}
if [ -n "$bench" ]; then
  say "times"
  sh "$source/tests/bench/gpu/run.sh" "$program" "$build/tests/gpu/gpu_bench" "$source" $quick || failed=$((failed + 1))
fi
if [ -n "$bench" ] && [ -z "$quick" ]; then
  say "compiling and a run, ms: with first algorithms; with measured ones, nothing kept; with what was kept"
  for name in bert_base resnet50 mobilenet_v2; do
    for precision in float32 float16; do
      printf '%-14s %-9s' "$name" $precision
      for how in "first false" "kept true" "kept true"; do
        printf '  %s' "$(measured "$name-$precision-${how% *}" "$models/$name.lua" --set precision=$precision --set tune="${how#* }")"
      done
      echo
    done
  done
fi
say "done"
echo "$passed passed, $failed failed"
[ "$failed" -eq 0 ]
